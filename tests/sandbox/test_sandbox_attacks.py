"""Attacks score zero and harm nothing: the next honest program still passes in the same sandbox."""

import os
import secrets
import socket

import attacks
import pytest

SECRET = [[[3], "SECRET-" + secrets.token_hex(4)]]


def run(box, program, tests=SECRET, timeout=5.0):
    """The verdict, after which the sandbox must be as good as before."""
    verdict = box.run(program, tests, entry_point="f", timeout=timeout)
    assert box.run(attacks.HONEST, [[[1], 2]], entry_point="f").passed
    return verdict


@pytest.mark.parametrize("name", ["INFINITE_LOOP", "SLEEPER"])
def test_endless_programs_time_out(box, name):
    verdict = run(box, getattr(attacks, name), timeout=0.3)
    assert verdict.reason == "timed out after 0.3 s"
    assert not verdict.passed


@pytest.mark.parametrize("name", ["MEMORY", "MEMORY_IN_STEPS"])
def test_four_gigabytes(box, name):
    verdict = run(box, getattr(attacks, name))
    assert (verdict.passed, verdict.reason) == (False, "out of memory")


@pytest.mark.parametrize("name", ["FORKS", "THREADS"])
def test_fork_bomb_starts_nothing(box, name):
    assert run(box, getattr(attacks, name), [[[3], 0]]).passed  # it counted none


def test_reading_outside(box, tmp_path):
    (tmp_path / "file").write_text("private")
    inside = [
        "/etc/passwd",
        "/etc/shadow",
        "/proc/self/environ",
        "/proc/1/mem",
        "/dev/shm",
        "/home",
    ]
    paths = [*inside, str(tmp_path), str(tmp_path / "file"), __file__, os.path.expanduser("~")]
    verdict = run(box, attacks.READS, [[[paths], []]])
    home_of_python = "returned [['.pyenv']]" in verdict.reason  # a new, empty parent directory
    assert verdict.passed or home_of_python, verdict.reason


def test_writing_outside(box, tmp_path):
    (tmp_path / "file").write_text("private")
    before = os.stat(tmp_path / "file")
    python = os.path.dirname(os.__file__)
    paths = [str(tmp_path / "file"), "/tmp/x", "/x", "/etc/x", "/dev/shm/x", f"{python}/os.py"]
    paths += ["/sandbox/inside/judge.py", "/dev/null/x", "/usr/x"]
    verdict = run(box, attacks.WRITES, [[[paths], []]])
    assert verdict.passed, verdict.reason
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]
    assert os.stat(tmp_path / "file") == before


def test_sockets(box):
    with socket.create_server(("127.0.0.1", 0)):
        verdict = run(box, attacks.SOCKETS, [[[3], []]])
    assert verdict.passed, verdict.reason


def test_other_programs(box):
    verdict = run(box, attacks.PROGRAMS, [[[3], "nothing"]])
    assert verdict.passed, verdict.reason


@pytest.mark.parametrize("name", ["SYS_EXIT", "OS_EXIT", "EXIT_IN_CALL", "OS_EXIT_IN_CALL"])
def test_exit_before_the_tests(box, name):
    verdict = run(box, getattr(attacks, name))
    assert not verdict.passed
    assert "before the tests were done" in verdict.reason


@pytest.mark.parametrize("name", ["PRINTED", "FORGED", "CLOSED_CHANNEL", "PATCHED"])
def test_forged_verdicts(box, name):
    assert not run(box, getattr(attacks, name), timeout=1.0).passed


@pytest.mark.parametrize("base", ["object", "int", "str", "list", "dict", "tuple"])
@pytest.mark.parametrize("wrapped", ["Same()", "[Same()]", "{1: Same()}", "(Same(),)"])
def test_objects_that_equal_everything(box, base, wrapped):
    program = attacks.ALWAYS_EQUAL.replace("BASE", base).replace("WRAPPED", wrapped)
    suites = ["assert f(3) == 7", "assert not f(3) != 7", "assert f(3) < 0", "assert 7 in [f(3)]"]
    for tests in ([[[3], 7]], *suites):
        verdict = box.run(program, tests, entry_point="f")
        assert not verdict.passed
        assert "'Same' object" in verdict.reason or "unhashable" in verdict.reason


def test_frame_walking_finds_neither_tests_nor_earlier_programs(box):
    earlier = f"earlier = {SECRET[0][1]!r}\n" + attacks.HONEST
    assert box.run(earlier, [[[1], 2]], entry_point="f").passed
    verdict = run(box, attacks.FRAME_WALK)
    assert "returned 'nothing'" in verdict.reason


def test_the_attacks_work_where_there_is_no_wall():
    """Else a test above could pass because the attack is broken."""
    secret = SECRET[0][1]
    scope = {}
    exec(attacks.FRAME_WALK, scope)
    assert scope["f"](3) == secret
    exec(attacks.ALWAYS_EQUAL.replace("BASE", "int").replace("WRAPPED", "[Same()]"), scope)
    assert scope["f"](3) == [7]
    exec(attacks.READS, scope)
    assert scope["f"]([__file__]) == [b'"""Attacks score zer']
    exec(attacks.SOCKETS, scope)
    assert "AF_INETSOCK_STREAM" in scope["f"](3)


def test_killing_the_judge_and_the_worker(box):
    pids = box.pids()
    verdict = run(box, attacks.KILLS, [[[3], 0]])
    assert verdict.passed, verdict.reason
    assert box.pids() == pids


def test_limits_cannot_be_raised(box):
    assert run(box, attacks.LIMITS, [[[3], []]]).passed


@pytest.mark.parametrize("name", ["HUGE_VALUE", "ENDLESS_VALUE"])
def test_values_too_large_to_carry(box, name):
    verdict = run(box, getattr(attacks, name))
    assert "only plain values are compared" in verdict.reason


@pytest.mark.parametrize("name", ["LITTER", "NESTED_LITTER"])
def test_files_left_for_the_next_run(bubblewrap, name):
    program = getattr(attacks, name)
    for _ in range(4):  # two workers, each of them twice
        assert bubblewrap.run(program, [[[3], []]], entry_point="f").passed


def test_files_cannot_fill_the_disk(bubblewrap):
    verdict = bubblewrap.run(attacks.BIG_FILES, "assert 0 < f(3) <= 16 * 2**20", entry_point="f")
    assert verdict.passed, verdict.reason


def test_nothing_can_be_written_under_landlock(box):
    if box.isolation == "landlock":
        assert "PermissionError" in run(box, attacks.LITTER, [[[3], []]]).reason

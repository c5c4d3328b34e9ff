"""Verdicts are right, their reasons can be read, and the pool keeps its promises."""

import os
import signal
import threading
from random import Random

import attacks
import pytest

from xpredflow.errors import InputError
from xpredflow.sandbox import Job, Sandbox, launcher
from xpredflow.tasks.generated.minicode.task import MiniCode


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("def f(a):\n    return sum(a)", "passed"),
        ("def f(a):\n    return 4", "test 2: f([1, 2]) returned 4, expected 3"),
        ("def f(a):\n    return sum(a) + 0.0", "test 1: f([4]) returned 4.0, expected 4"),
        ("def g(a):\n    return 4", "program does not define 'f'"),
        ("f = 4", "program does not define 'f'"),
        ("def f(a):\n    return 4 +", "SyntaxError: invalid syntax (line 2 of the program)"),
        (
            "import nothing",
            "ModuleNotFoundError: No module named 'nothing' (line 1 of the program)",
        ),
        (
            "def f(a):\n    return a[7]",
            "test 1: f([4]) raised IndexError: list index out of range (line 2 of the program), "
            "expected 4",
        ),
        (
            "def f(a):\n    raise KeyboardInterrupt",
            "test 1: f([4]) raised KeyboardInterrupt (line 2 of the program), expected 4",
        ),
        ("def f():\n    return 4", "test 1: f([4]) raised TypeError: f() takes 0 positional"),
        ("import ctypes\nctypes.string_at(0)", "the program crashed with SIGSEGV"),
    ],
)
def test_reasons(box, program, reason):
    verdict = box.run(program, [[[[4]], 4], [[[1, 2]], 3]], entry_point="f")
    assert verdict.passed == (reason == "passed")
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize(
    ("program", "suite"),
    [
        ("def f(a):\n    a.sort()", "a = [2, 1]\nb = a\nf(a)\nassert b == [1, 2]"),
        ("def f(a):\n    a[0].append(1)", "a = [[]]\nb = a[0]\nf(a)\nassert b == [1]"),
        ("def f(a, d):\n    d['x'] = a", "d = {}\nf(1, d=d)\nassert d == {'x': 1}"),
        ("def f(a):\n    del a[1:]", "a = [1, 2, 3]\nf(a)\nassert a == [1]"),
        ("def f(a):\n    a[0].add(3)", "s = {1}\nf((s,))\nassert s == {1, 3}"),
        ("def f(a):\n    a[2] = a.pop(1)", "a = {1: 5}\nf(a)\nassert a == {2: 5}"),
    ],
)
def test_changes_to_arguments_are_carried_back(box, program, suite):
    verdict = box.run(program, suite)
    assert verdict.passed, verdict.reason


def test_expected_exceptions_reach_the_tests(box):
    suite = "try:\n    f(1)\n    assert False\nexcept {}:\n    pass"
    own = "class Own(KeyError):\n    pass\ndef f(x):\n    raise Own(x)"
    assert box.run("def f(x):\n    raise ValueError(x)", suite.format("ValueError")).passed
    assert box.run(own, suite.format("KeyError")).passed
    assert not box.run(own, suite.format("ValueError")).passed
    assert not box.run("def f(x):\n    return x", suite.format("ValueError")).passed


def test_a_bare_except_in_the_tests_saves_nobody(box):
    suite = "try:\n    f(1)\nexcept:\n    pass"
    for program in ("import os\ndef f(x):\n    os._exit(0)", "def f(x):\n    return object()"):
        assert not box.run(program, suite, entry_point="f").passed


def test_objects_of_the_programs_own_classes(box):
    program = (
        "class N:\n    def __init__(s, v):\n        s.v = v\ndef f(n):\n    return n.v + n.m.v"
    )
    suite = "n = N(1)\nn.m = N(2)\nn.m.v = 5\nassert f(n) == 6\nassert n.v == 1\nassert n != N(1)"
    verdict = box.run(program, suite, entry_point="f")
    assert verdict.passed, verdict.reason
    equal = program.replace("class N:", "class N:\n    __eq__ = lambda s, o: True")
    assert not box.run(equal, "assert N(1) == N(2)", entry_point="f").passed


def test_the_program_cannot_redefine_what_the_tests_use(box):
    program = "def f(x):\n    return 0\ndef len(x):\n    return 3\ndef helper(x):\n    return 3"
    assert not box.run(program, "assert len([f(1)]) == 3").passed
    setup = "def helper(x):\n    return x"
    assert not box.run(program, "assert helper(f(1)) == 3", setup=setup).passed


def test_failed_asserts_are_quoted(box):
    verdict = box.run("def f(x):\n    return 2", "y = 3\nassert f(1) == y")
    assert verdict.reason == "assert f(1) == y: f(1) returned 2"


def test_tests_that_never_end_on_a_hostile_value(box):
    suite = "n = f(1)\nwhile n > 0:\n    n -= 1"
    verdict = box.run("def f(x):\n    return 10**15", suite, timeout=0.2)
    assert (verdict.passed, verdict.reason) == (False, "timed out after 0.2 s, in the tests")
    assert box.run(attacks.HONEST, [[[1], 2]], entry_point="f").passed


def test_map_keeps_the_order_and_submit_works_from_threads(bubblewrap):
    jobs = [Job(f"def f(x):\n    return {i % 3}", [[[0], 0]], "f") for i in range(30)]
    verdicts = bubblewrap.map(jobs)
    assert [v.passed for v in verdicts] == [i % 3 == 0 for i in range(30)]
    futures = []
    threads = [
        threading.Thread(target=lambda: futures.append(bubblewrap.submit(jobs[0])))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(future.result().passed for future in futures)


def test_the_runner_grades_minicode(bubblewrap):
    task, rng = MiniCode(), Random(0)
    for index in range(20):
        problem = task.problem("test", index)
        answer = task.answer(problem, rng)
        assert task.score(problem, answer, bubblewrap.runner).passed
        broken = answer.replace("return", "return 1 if 1 else")
        assert not task.score(problem, broken, bubblewrap.runner).passed


def slow(box, seconds):
    program = f"import time\ndef f(x):\n    time.sleep({seconds})\n    return x"
    return box.submit(Job(program, [[[1], 1]], "f"))


def kill(box, pid):
    """Kill a worker and wait until another has taken its seat."""
    os.kill(pid, signal.SIGKILL)
    for _ in range(1000):
        if pid not in box.pids():
            return
        threading.Event().wait(0.01)
    raise AssertionError("no new worker")


def test_a_killed_worker_is_replaced_and_the_run_retried_once(box):
    future = slow(box, 0.2)
    (pid,) = box.pids()
    kill(box, pid)
    assert future.result().passed
    future = slow(box, 2.0)
    kill(box, *box.pids())
    os.kill(box.pids()[0], signal.SIGKILL)
    assert future.result().reason == "the worker was killed, 2 times in a row"
    assert box.run(attacks.HONEST, [[[1], 2]], entry_point="f").passed


def test_without_a_sandbox_it_refuses(monkeypatch):
    def unavailable(isolation, resources):
        raise launcher.Unavailable(f"no {isolation} here")

    monkeypatch.setattr("xpredflow.sandbox.worker.command", unavailable)
    with pytest.raises(InputError, match="--unsafe-code-execution") as error:
        Sandbox(workers=1)
    assert "bubblewrap: no bubblewrap here; landlock: no landlock here" in str(error.value)


def test_without_bubblewrap_it_falls_back_to_landlock(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with Sandbox(workers=1) as box:
        assert box.isolation == "landlock"


def test_no_isolation_only_when_asked_for():
    with pytest.raises(InputError, match="unsafe=True"):
        Sandbox(workers=1, isolation="none")
    with Sandbox(workers=1, isolation="none", unsafe=True) as box:
        assert box.run(attacks.HONEST, [[[1], 2]], entry_point="f").passed
        # Even so a fork bomb (a bounded one) must not take the machine down.
        assert box.run(attacks.FORKS, [[[1], 0]], entry_point="f").passed


def test_mistakes_of_the_caller_are_named(box):
    with pytest.raises(InputError, match="a 'range' object"):
        box.run(attacks.HONEST, [[[range(3)], 2]], entry_point="f")
    with pytest.raises(InputError, match="entry_point="):
        box.run(attacks.HONEST, "assert True")
    with pytest.raises(InputError, match="did you mean 'landlock'"):
        Sandbox(isolation="landlok")

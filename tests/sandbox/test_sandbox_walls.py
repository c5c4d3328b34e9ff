"""Single walls: what each keeps out, shown where nothing else would."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attacks
import pytest

from xpredflow.sandbox import Sandbox
from xpredflow.sandbox.inside.judge import identical
from xpredflow.sandbox.launcher import PACKAGES
from xpredflow.sandbox.worker import LONGEST_REASON, plain

# Tries every way of opening x for more than reading; returns the flags that worked.
OPENS = """
import os
def f(x):
    got = []
    for flags in (os.O_RDONLY | os.O_TRUNC, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC,
                  os.O_RDONLY | os.O_CREAT, os.O_TMPFILE | os.O_RDWR):
        try:
            os.close(os.open(x, flags))
            got.append(flags)
        except OSError:
            pass
    return got
"""
# Without Landlock: the filter alone must refuse, as on kernels whose Landlock lacks truncation.
FILTERED = """
import sys
sys.path.insert(0, sys.argv[1])
from inside.seccomp import Filter
Filter(read_only=True).install()
exec(sys.stdin.read())
print(f(sys.argv[2]), open(sys.argv[2]).read())
"""
# Finds packages where a base interpreter keeps them; returns what it could read of them.
PACKAGE_FILES = """
import os
def f(x):
    got = []
    for place, _, files in os.walk(x):
        for name in files[:3]:
            try:
                open(os.path.join(place, name), "rb").read(1)
                got.append(name)
            except OSError:
                pass
        if len(got) > 3:
            break
    return got
"""
MANY_FILES = """
def f(x):
    try:
        for number in range(10**6):
            open(str(number), "w").close()
    except OSError:
        pass
    return 0
"""
# What a program learns of a file by its name; the standard library must still be there.
NAMES = """
import os
def f(x):
    import bz2, csv, ctypes, decimal, sqlite3, unicodedata
    try:
        os.close(os.open(x, os.O_RDONLY))
        refusal = ""
    except OSError as error:
        refusal = type(error).__name__
    return [os.path.exists(x), refusal]
"""
HIDES = """
import sys
sys.path.insert(0, sys.argv[1])
from inside.root import hide_all_but
sys.exit(not hide_all_but([sys.argv[2]]))
"""
LONG_REASON = """
def f(x):
    raise ValueError("\\x1b[31m\\u2028\\ud800\\n" * 1000)
"""


def test_landlock_hides_names_where_namespaces_are_allowed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    inside = Path(sys.modules[identical.__module__].__file__ or "").parents[1]
    probe = [sys.executable, "-c", HIDES, str(inside), str(secret)]
    if subprocess.run(probe, check=False).returncode:
        pytest.skip("this system lets nobody make namespaces: Landlock alone hides no names")
    with Sandbox(workers=1, isolation="landlock") as box:
        found = box.run(NAMES, [[[str(secret)], ""]], entry_point="f").reason
    assert "[False, 'FileNotFoundError']" in found


def test_a_file_that_may_be_read_cannot_be_emptied(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    inside = Path(sys.modules["xpredflow.sandbox"].__file__).parent  # type: ignore[arg-type]
    done = subprocess.run(
        [sys.executable, "-S", "-c", FILTERED, str(inside), str(tmp_path / "file")],
        input=OPENS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[] content\n", done.stderr


def test_python_itself_cannot_be_opened_for_writing(box) -> None:
    # O_CREAT on a file that is there already opens it for reading, which is no harm
    suite = f"assert set(f({os.__file__!r})) <= {{{os.O_CREAT}}}"
    verdict = box.run(OPENS, suite, entry_point="f")
    assert verdict.passed, verdict.reason


def test_installed_packages_cannot_be_read(box) -> None:
    patient: dict[str, Any] = {"entry_point": "f", "timeout": 60.0}  # imports wait for the disk
    library = os.path.dirname(os.path.realpath(os.__file__))
    for name in PACKAGES:
        verdict = box.run(PACKAGE_FILES, [[[os.path.join(library, name)], []]], **patient)
        assert verdict.passed, verdict.reason
    verdict = box.run(
        "import json, xml.dom, sqlite3\ndef f(): return 1", "assert f() == 1", **patient
    )
    assert verdict.passed or "sqlite3" in verdict.reason, verdict.reason  # the library still is
    for name in ("xpredflow", "numpy", "pip"):
        reason = box.run(f"import {name}\ndef f(): return 1", "assert f() == 1", **patient).reason
        assert "ModuleNotFoundError" in reason or "PermissionError" in reason, reason


def test_files_are_bounded_in_number(bubblewrap) -> None:
    verdict = bubblewrap.run(MANY_FILES, [[[3], 0]], entry_point="f", timeout=20)
    assert verdict.reason == "the program made more than 1000 files"
    assert bubblewrap.run(attacks.HONEST, [[[1], 2]], entry_point="f").passed


def test_reasons_are_one_short_plain_line(box) -> None:
    reason = box.run(LONG_REASON, [[[3], 0]], entry_point="f").reason
    assert reason.isprintable()
    assert len(reason) <= LONGEST_REASON
    assert r"\x1b[31m\u2028\ud800\n" in reason
    assert len(plain("x" * 10**6)) == LONGEST_REASON


def test_without_isolation_a_program_runs_in_a_directory_of_its_own() -> None:
    program = "import os\ndef f(): return os.getcwd()"
    with Sandbox(workers=1, isolation="none", unsafe=True) as box:
        assert box.run(program, "assert '/xpredflow-' in f()").passed


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([True, 1.0], [1, 1]),
        ((1, [2.0]), (1, [2])),
        ({"a": True}, {"a": 1}),
        ({True: 1}, {1: 1}),
        ({1.0}, {1}),
        (frozenset([(1, True)]), frozenset([(1, 1)])),
        ([[]], [()]),
    ],
)
def test_types_count_all_the_way_down(box, got, expected) -> None:
    assert not identical(got, expected)
    assert identical(expected, expected)
    assert box.run(f"def f(): return {expected!r}", [[[], expected]], entry_point="f").passed
    assert not box.run(f"def f(): return {got!r}", [[[], expected]], entry_point="f").passed


@pytest.mark.parametrize(
    "tests", [[], "", "pass", "def check(candidate):\n    assert candidate(1) == 2"]
)
def test_no_tests_are_not_passed(box, tests) -> None:
    verdict = box.run("def f(x): return x", tests, entry_point="f")
    assert not verdict.passed
    assert "never used the program" in verdict.reason


def test_a_judge_that_was_killed_did_not_time_out(box) -> None:
    """The tests are trusted, so that they can end their process as a shortage of memory would."""
    suite = "f(1)\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
    verdict = box.run("def f(x): return x", suite, entry_point="f")
    assert not verdict.passed
    assert "the judge was killed by SIGKILL, perhaps for memory" in verdict.reason
    assert "timed out" not in verdict.reason
    slow = box.run("def f(x): return x", "f(1)\nwhile True: pass", entry_point="f", timeout=0.3)
    assert slow.reason == "timed out after 0.3 s, in the tests"

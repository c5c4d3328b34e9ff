"""`xpredflow demo` as a user calls it, on the toy model."""

import re
from collections.abc import Callable
from typing import Any

from xpredflow.tasks import TASKS


def test_both_decoders_take_the_same_passes_and_are_graded(run: Callable[..., Any]) -> None:
    result = run("demo", "--tasks", "minimath", "--more", "2", "--policy", "constant:1/2")
    assert result.exit_code == 0, result.stderr
    assert TASKS["minimath"]().problem("validation", 7).prompt[:40] in result.stdout
    flow, mask = re.findall(r"(?:flow|mask prediction), (\d+) passes", result.stdout)
    assert flow == mask
    assert result.stdout.count("wrong:") == 2
    assert "2 further problems" in result.stdout
    assert "0 in 64.0" in result.stdout


def test_programs_are_run_in_the_sandbox(run: Callable[..., Any]) -> None:
    result = run("demo", "--tasks", "minicode", "--more", "0")
    assert result.exit_code == 0, result.stderr
    assert "wrong:" in result.stdout
    assert "further" not in result.stdout


def test_bad_input_is_named(run: Callable[..., Any]) -> None:
    result = run("demo", "--tasks", "mbpp")
    assert result.exit_code == 2
    assert "no task 'mbpp' to demonstrate" in result.stderr
    result = run("demo", "--number", "900")
    assert result.exit_code == 2
    assert "no problem 900" in result.stderr

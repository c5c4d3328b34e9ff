"""`xpredflow demo` as a user calls it, on the toy model, and its problems on the real one."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from xpredflow.cli import app
from xpredflow.cli.commands import demo
from xpredflow.tasks import TASKS


def test_mask_prediction_takes_the_flows_passes_and_all_are_graded(run: Callable[..., Any]) -> None:
    result = run("demo", "--task", "minimath", "-n", "7", "--more", "2", "--policy", "constant:1/2")
    assert result.exit_code == 0, result.stderr
    assert TASKS["minimath"]().problem("validation", 7).prompt[:40] in result.stdout
    found = re.findall(r"(\d+) pass(?:es)?:\s+wrong", result.stdout)
    assert len(found) == 3
    assert found[0] == found[2]
    assert "The next 2 problems" in result.stdout
    assert result.stdout.count("0 right") == 3


def test_programs_are_run_in_the_sandbox(run: Callable[..., Any]) -> None:
    result = run("demo", "--task", "minicode", "--more", "0")
    assert result.exit_code == 0, result.stderr
    assert "wrong" in result.stdout
    assert "The next" not in result.stdout


def test_the_decoders_differ_on_the_problems_that_are_shown() -> None:
    """Flow is right in the fewest passes, threshold right in more, mask wrong in the flow's."""
    result = CliRunner().invoke(app, ["demo", "--more", "0"])
    assert result.exit_code == 0, result.stderr
    rows = re.findall(r"│ (\d+) pass(?:es)?: (right|wrong)", result.stdout)
    assert len(rows) == 3 * len(demo.TELLING)
    for i in range(0, len(rows), 3):
        (flow, flow_said), (threshold, threshold_said), (mask, mask_said) = rows[i : i + 3]
        assert (flow_said, threshold_said, mask_said) == ("right", "right", "wrong")
        assert int(flow) == int(mask) < int(threshold)


def test_ctrl_c_stops_politely(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_show", interrupt)
    result = run("demo", "--task", "minimath")
    assert result.exit_code == 130
    assert result.stderr == "stopped; `xpredflow demo` begins anew\n"


def test_bad_input_is_named(run: Callable[..., Any]) -> None:
    result = run("demo", "--task", "mbpp")
    assert result.exit_code == 2
    assert "no task 'mbpp' to demonstrate" in result.stderr
    result = run("demo", "--number", "900")
    assert result.exit_code == 2
    assert "no problem 900" in result.stderr

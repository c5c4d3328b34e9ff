"""`xpredflow eval` as a user calls it, on the embedded model."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from xpredflow.cli import app
from xpredflow.cli.progress import PassesBar
from xpredflow.evaluation import evaluate
from xpredflow.models.embedded import load_embedded
from xpredflow.tasks.generated.minimath.task import MiniMath

FIELDS = {"task", "decoder", "policy", "budget", "n", "accuracy", "passes_mean", "passes_max"}
QUICK = ["--limit", "3", "-b", "4", "-o", "max_batch=4"]


def call(*arguments: str):
    return CliRunner().invoke(app, ["eval", *arguments])


def test_a_row_per_task() -> None:
    result = call("-d", "flow", "--policy", "confidence", "--json", *QUICK)
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["task"] for row in rows] == ["minicode", "minimath"]
    for row in rows:
        assert row.keys() >= FIELDS
        assert (row["n"], row["policy"], row["budget"]) == (3, "confidence", "4 passes")
        assert row["low"] <= row["accuracy"] <= row["high"]
        assert row["passes_max"] <= 4


def test_plain_rows_and_pass_at_k() -> None:
    result = call("-t", "minimath", "-d", "mask", "-o", "temperature=1", "--samples", "2", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "minimath   mask, budget 4 passes:" in result.stdout
    assert "of 6" in result.stdout
    assert "pass@2" in result.stdout


def test_a_budget_of_one_over_one_is_the_full_one() -> None:
    short = ["-t", "minimath", "-d", "mask", "-o", "gen_length=6", "--limit", "2", "--json"]
    rows = [json.loads(call(*short, *more).stdout) for more in ([], ["-b", "1/1"], ["-b", "1"])]
    assert [row["passes_max"] for row in rows] == [6, 6, 1]
    assert [row["budget"] for row in rows] == ["full (6 passes)", "full (6 passes)", "1 pass"]


def test_samples_are_kept_and_reused(tmp_path: Path) -> None:
    arguments = ["-t", "minimath", "-d", "mask", "--out", str(tmp_path), "--json", *QUICK]
    first, second = call(*arguments), call(*arguments)
    lines = [json.loads(line) for line in (tmp_path / "minimath.jsonl").open()]
    assert len(lines) == 1 + 3
    assert lines[1].keys() >= {"prompt", "answer", "passed", "reason", "passes", "seed"}
    one, two = json.loads(first.stdout), json.loads(second.stdout)
    assert {**one, "seconds": 0, "seconds_mean": 0} == {**two, "seconds": 0, "seconds_mean": 0}


def test_two_processes_print_the_same_table() -> None:
    arguments = ["eval", "-t", "minimath", "-d", "mask", "--json", *QUICK]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *launch, "-m", "xpredflow", *arguments]
    two = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    one = call(*arguments[1:])
    first, second = (json.loads(done.stdout) for done in (one, two))
    timeless = {"seconds": 0, "seconds_mean": 0}
    assert {**first, **timeless} == {**second, **timeless}


def test_an_interrupted_evaluation_says_what_was_kept_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["-t", "minimath", "-d", "mask", *QUICK]
    score, calls = MiniMath.score, []

    def interrupted(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score(*given)

    monkeypatch.setattr(MiniMath, "score", interrupted)
    result = call(*arguments, "--out", str(tmp_path))
    assert result.exit_code == 130
    assert f"after 2 more answers; they are kept in {tmp_path}: the same" in result.stderr
    calls.clear()
    result = call(*arguments)
    assert result.exit_code == 130
    assert "nothing was kept; with --out" in result.stderr
    monkeypatch.setattr(MiniMath, "score", score)
    assert call(*arguments, "--out", str(tmp_path)).exit_code == 0
    assert len((tmp_path / "minimath.jsonl").read_text().strip().split("\n")) == 1 + 3


def test_the_rules_in_force_are_told() -> None:
    arguments = ["-t", "minimath", "-d", "threshold:0.8", *QUICK]
    assert "threshold=0.8" in call(*arguments).stdout
    assert json.loads(call(*arguments, "--json").stdout)["rules"]["threshold"] == 0.8


def test_the_bar_moves_with_passes_and_ends_full(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", screen)
    seen: list[float] = []

    class Seen(PassesBar):
        def step(self, step: Any) -> None:
            super().step(step)
            assert self.progress is not None
            seen.append(self.progress.tasks[0].completed)

    model = load_embedded("tiny")
    options: dict[str, Any] = {"budget": 5, "max_batch": 2}
    with Seen("minimath") as bar:
        evaluate(model, "minimath", decoder="threshold:0.5", limit=3, watch=bar, **options)
        assert bar.progress is not None
        [task] = bar.progress.tasks
        assert (task.total, task.completed) == (15, 15)
        assert "minimath: 3 answers" in task.description
    assert seen == sorted(seen)
    assert len(set(seen)) > 3  # the number of answers


def test_bad_input_is_named() -> None:
    cases = [
        (["-t", "minicod"], "did you mean 'minicode'"),
        (["-t", ","], "no tasks were given"),
        (["-d", "flow", "-o", "tauu=1"], "did you mean 'tau'"),
        (["-t", "minimath", "--data", "minimath=x"], "takes neither data nor template"),
        (["-t", "mbpp", "--data", "mbpp"], "--data 'mbpp': expected NAME=VALUE"),
        (["-t", "mbpp", "--data", "mbpp=/no/such.jsonl"], "/no/such.jsonl"),
        (["-t", "gsm8k", "--template", "llada-bas"], "did you mean 'llada-base'"),
        (["--split", "tset", "-t", "minimath"], "did you mean 'test'"),
        (["-t", "mine.jsonl"], "no file 'mine.jsonl'"),
        (["-t", "minimath", "--grader", "number"], "belong to a file of rows"),
        (["-t", "minimath", "--column", "prompt"], "--column 'prompt': expected NAME=VALUE"),
    ]
    for arguments, message in cases:
        result = call(*arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr


def test_a_published_task_from_a_file(tmp_path: Path) -> None:
    rows = [{"question": f"{i} + 1?", "answer": f"{i}+1={i + 1}\n#### {i + 1}"} for i in range(2)]
    file = tmp_path / "gsm8k.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = [
        "--data",
        f"gsm8k={file}",
        "--template",
        "zero-shot",
        "--json",
        "--split",
        "test",
        "-o",
        "gen_length=8",
    ]
    result = call("-t", "gsm8k", "-d", "mask", "-b", "2", *given)
    assert result.exit_code == 0, result.stderr
    row = json.loads(result.stdout)
    assert (row["task"], row["n"], row["passes_max"]) == ("gsm8k", 2, 2)

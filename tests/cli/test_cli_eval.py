"""`xpredflow eval` as a user calls it, on the embedded model."""

import json
import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from xpredflow.cli import app

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
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_two_processes_print_the_same_table() -> None:
    arguments = ["eval", "-t", "minimath", "-d", "mask", "--json", *QUICK]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    rows = []
    for before in ([], launch):
        command = [sys.executable, *before, "-m", "xpredflow", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        rows.append({**json.loads(done.stdout), "seconds": 0})
    assert rows[0] == rows[1]


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

"""The examples of tasks of one's own, run as a user runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from xpredflow.cli import app

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = Path(__file__).parents[2] / "src"


def run(name: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file() -> None:
    *lines, last = run("own_task_file.py").strip().split("\n")
    assert len(lines) == 6
    assert sum(line.startswith("True") for line in lines) >= 4, lines
    assert "right in" in last


def test_the_class() -> None:
    assert "task='Purses'" in run("own_task.py")


def test_both_on_the_command_line(tmp_path: Path) -> None:
    names = ["-t", str(EXAMPLES / "own_task.py:Purses"), "-t", str(EXAMPLES / "own_task.jsonl")]
    options = ["--response-length", "64", "--split", "all", "-m", "tiny", "-d", "threshold:0.9"]
    result = CliRunner().invoke(app, ["eval", *names, *options, "--json", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.strip().split("\n")]
    assert [row["task"] for row in rows] == ["Purses", "own_task"]
    assert all(row["accuracy"] > 0.5 for row in rows), rows
    assert {path.name for path in tmp_path.iterdir()} == {"Purses.jsonl", "own_task.jsonl"}


def test_solved_answers_of_a_file_are_kept(tmp_path: Path) -> None:
    out = tmp_path / "own.jsonl"
    data = ["--data", str(EXAMPLES / "own_task.jsonl"), "--response-length", "64"]
    command = ["self-generate", *data, "--keep", "solved", "--out", str(out), "-m", "tiny"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    answers = [json.loads(line) for line in out.read_text().strip().split("\n")]
    assert {answer["source"] for answer in answers} == {"own_task"}
    assert all(answer["solved"] for answer in answers)

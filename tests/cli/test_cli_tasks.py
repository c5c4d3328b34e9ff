"""`xpredflow tasks` as a user calls it."""

import json
from pathlib import Path

from typer.testing import CliRunner

from xpredflow.cli import app
from xpredflow.tasks import TASKS, make_task


def call(*arguments: str):
    return CliRunner().invoke(app, ["tasks", *arguments])


def test_every_task_is_listed() -> None:
    lines = call().stdout.split("\n")
    assert [line.split()[0] for line in lines[: len(TASKS)]] == list(TASKS)
    assert "mine.jsonl" in lines[len(TASKS) + 1]


def test_problems_are_shown_with_right_answers() -> None:
    task = make_task("minimath")
    shown = call("minimath", "--split", "test", "--level", "2", "--limit", "2").stdout
    assert shown.count("[") == 2
    problem = next(p for i in range(9) if (p := task.problem("test", i)).level == 2)
    assert problem.prompt in shown
    assert f"#### {problem.meta['answer']}" in shown


def test_another_draw_shows_other_problems() -> None:
    own = make_task("minicode").problem("test", 0).prompt
    other = make_task("minicode", draw=1).problem("test", 0).prompt
    shown = call("minicode", "--split", "test", "--draw", "1", "--limit", "1").stdout
    assert other in shown
    assert own not in shown


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps({"q": "2 + 3?", "answer": 5}) + "\n")
    asked = [str(file), "--split", "all", "--grader", "number", "--column", "prompt=q"]
    assert call(*asked).stdout == "[mine/0] 2 + 3?\n#### 5\n\n"
    empty = [split for split in ("train", "validation", "test") if split != "all"]
    said = [call(*asked[:1], "--split", split, *asked[3:]).stderr for split in empty]
    assert sum("no problem of mine" in line for line in said) == 2
    assert call("minimat").exit_code == 2

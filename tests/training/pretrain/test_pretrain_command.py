"""`xpredflow pretrain` as a user calls it."""

import json
from pathlib import Path

import pytest
from small_run import SHAPE
from typer.testing import CliRunner

from xpredflow import load
from xpredflow.cli import app


def test_the_command_trains_and_resumes(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text(json.dumps(SHAPE))
    options = ["--shape", str(tmp_path / "small.json"), "--batch", "2", "-o", "vocabulary=600"]
    options += ["--tokenizer-examples", "400", "--threads", "1"]
    run = CliRunner().invoke(app, ["pretrain", str(tmp_path / "r"), "-n", "20", *options])
    assert run.exit_code == 0, run.stderr
    assert "update 20/20" in run.stderr
    assert {f.name for f in (tmp_path / "r").iterdir()} >= {"log.jsonl", "loss.png", "model"}
    load(tmp_path / "r/model")
    again = CliRunner().invoke(app, ["pretrain", str(tmp_path / "r"), "-n", "20", *options])
    assert again.exit_code == 2
    assert "pass --resume" in again.stderr
    given = ["--config", str(tmp_path / "r/run.toml"), "-n", "4"]
    other = CliRunner().invoke(app, ["pretrain", str(tmp_path / "o"), *given, "--threads", "1"])
    assert other.exit_code == 0, other.stderr
    files = [(tmp_path / d / "run.toml").read_text().splitlines() for d in ("r", "o")]
    assert [pair for pair in zip(*files, strict=True) if pair[0] != pair[1]] == [
        ("updates = 20", "updates = 4")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "bach=2"], "did you mean 'batch'"),
        (["--shape", "huge"], "shape is 'huge', which cannot be read"),
        (["--task", "minicode,chess"], "unknown task 'chess'"),
        (["--start", "tiny", "--shape", "tiny"], "one of the two"),
        (["--lr", "fast"], "lr is 'fast': expected a number"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    wrong = CliRunner().invoke(app, ["pretrain", str(tmp_path / "x"), *arguments])
    assert wrong.exit_code == 2
    assert message in wrong.stderr

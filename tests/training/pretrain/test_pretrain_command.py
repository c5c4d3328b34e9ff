"""`xpredflow pretrain` as a user calls it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_alignment import in_two
from small_run import SHAPE, SMALL, begin
from typer.testing import CliRunner

from xpredflow import InputError, load
from xpredflow.cli import app
from xpredflow.processes import Share
from xpredflow.training.pretrain.initialise import read_shape

MIXTURE = {**read_shape("tiny-moe"), "num_hidden_layers": 2}


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


@pytest.mark.parametrize("shape", [SHAPE, MIXTURE])
def test_two_processes_train_as_one(tmp_path: Path, shape: dict) -> None:
    (tmp_path / "shape.json").write_text(json.dumps(shape))
    options = ["--shape", str(tmp_path / "shape.json"), "--batch", "4", "-o", "vocabulary=600"]
    options += ["--tokenizer-examples", "400", "--task", "minimath", "-o", "probe_every=0"]
    options += ["--warmup", "2"]
    alone = CliRunner().invoke(app, ["pretrain", str(tmp_path / "alone"), "-n", "4", *options])
    assert alone.exit_code == 0, alone.stderr
    first, second = in_two(
        ["-m", "xpredflow", "pretrain", str(tmp_path / "two"), "-n", "4", *options]
    )
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert "checkpoint: " in first.stdout
    assert second.stdout == ""
    logs = [json.loads((tmp_path / run / "log.jsonl").read_text()) for run in ("alone", "two")]
    assert logs[1] == pytest.approx(logs[0], rel=1e-4)
    weights = [load(tmp_path / run / "model").state_dict() for run in ("alone", "two")]
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, atol=2e-3, rtol=1e-2)


def test_rows_that_processes_cannot_share_out_are_refused(tmp_path: Path) -> None:
    config = replace(SMALL, batch=4)
    with pytest.raises(InputError, match="batch is 4, which 3 processes cannot share"):
        begin(config, tmp_path, share=Share(0, 3))


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

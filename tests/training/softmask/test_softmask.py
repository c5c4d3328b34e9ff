"""Fine-tuning for soft masks: what is read, what is learned, and the command."""

import json
from pathlib import Path

import pytest
import torch
from builders import write_checkpoint
from own_answers import own_answers, write_answers
from typer.testing import CliRunner

from xpredflow import generate, load
from xpredflow.cli import app
from xpredflow.training.common.answer_batches import text_batch
from xpredflow.training.common.masking import draw_masks, masked_inputs
from xpredflow.training.common.start import start_from
from xpredflow.training.softmask import SoftMaskConfig
from xpredflow.training.softmask.trainer import Omega, SoftMaskTraining, soft_inputs

CONFIG = SoftMaskConfig(updates=6, batch=4, lr=1e-3, omega_lr=0.1, warmup=2, save_every=2)
FAMILIES = ("llada", "llada2")


@pytest.fixture(params=FAMILIES)
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write_checkpoint(tmp_path / request.param, request.param, tokenizer=True)
    return tmp_path / request.param


def begin(checkpoint: Path, out: Path, resume: bool = False) -> SoftMaskTraining:
    return SoftMaskTraining(start_from(checkpoint, own_answers(24)), CONFIG, out, resume)


def noisy_and_model(checkpoint: Path):
    model = load(checkpoint)
    batch = text_batch(own_answers(4), model.special, model.block_size)
    draw = torch.Generator().manual_seed(0)
    return draw_masks(batch, model.block_size, model.special.eos, draw, (0.2, 0.8)), model


def test_masks_are_blended_by_their_entropy_and_nothing_else_is_touched(checkpoint: Path) -> None:
    noisy, model = noisy_and_model(checkpoint)
    omega = Omega()
    hard = masked_inputs(model, noisy)
    assert torch.equal(soft_inputs(model, noisy, omega, 3), hard)  # ω_s = 0
    omega.omega_s.data.fill_(1.0)
    omega.omega_b.data.fill_(-1e3)  # σ(…) = 1: the hint alone
    soft = soft_inputs(model, noisy, omega, 1)
    assert torch.equal(soft[~noisy.masked], hard[~noisy.masked])
    logits = model.logits(hard, noisy.positions, noisy.columns)
    logits[..., model.special.mask] = -torch.inf
    best = model.embedding[logits.argmax(-1)]
    masked = noisy.masked[:, noisy.first :]
    assert torch.allclose(soft[:, noisy.first :][masked], best[masked], atol=1e-6)


def test_omega_gets_a_gradient_from_zero(checkpoint: Path) -> None:
    noisy, model = noisy_and_model(checkpoint)
    omega = Omega()
    soft_inputs(model, noisy, omega, 3).square().sum().backward()
    assert omega.omega_s.grad is not None
    assert omega.omega_s.grad.abs() > 0


def test_a_killed_run_ends_as_if_it_had_not_been(checkpoint: Path, tmp_path: Path) -> None:
    whole = begin(checkpoint, tmp_path / "whole")
    list(whole)
    killed = begin(checkpoint, tmp_path / "killed")
    for now in killed:
        if now.step == 3:
            break
    resumed = begin(checkpoint, tmp_path / "killed", resume=True)
    assert resumed.step == 2
    list(resumed)
    assert resumed.before == whole.before
    assert resumed.omega.values() == whole.omega.values()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
    logs = [(tmp_path / name / "log.jsonl").read_text() for name in ("whole", "killed")]
    assert logs[0] == logs[1]
    assert {json.loads(line)["soft"] for line in logs[0].splitlines()} == {True, False}


def test_the_command_and_its_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    own = write_answers(tmp_path / "own.jsonl", own_answers(24))
    command = ["train-softmask", str(tmp_path / "out"), "-m", str(checkpoint)]
    command += ["--answers", str(own), "-n", "40", "-o", "batch=8", "-o", "lr=3e-3"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    about = json.loads((tmp_path / "out" / "model" / "softmask.json").read_text())
    assert about["after"]["soft"] < 0.8 * about["before"]["soft"]
    omega = {name: about[name] for name in ("omega_s", "omega_a", "omega_b")}
    assert 0 < omega["omega_s"] <= 1
    model = load(tmp_path / "out" / "model")
    done = generate(model, "x", decoder="soft", gen_length=8, k=about["k"], **omega)[0]
    assert len(done.all_ids) == 8 or model.block_size
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2
    assert "--resume" in again.stderr


def test_bad_input_is_named(tmp_path: Path) -> None:
    own = write_answers(tmp_path / "own.jsonl", own_answers(4))
    for more, message in [
        (["-o", "soft_share=2"], "soft_share is 2"),
        (["-o", "omega=1"], "omega_lr"),
        (["-n", "0"], "updates is 0"),
    ]:
        command = ["train-softmask", str(tmp_path / "o"), "--answers", str(own), *more]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 2, more
        assert message in result.stderr

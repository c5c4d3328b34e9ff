"""Pretraining: the objective, batches that depend on their number alone, and exact resumption."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from xpredflow import InputError, generate, load
from xpredflow.cli import app
from xpredflow.models.experts import Router, Routing
from xpredflow.training.common.cross_entropy import masked_cross_entropy
from xpredflow.training.common.masking import draw_masks
from xpredflow.training.common.plots import plot_losses
from xpredflow.training.pretrain.balance import Balance
from xpredflow.training.pretrain.batches import chunk
from xpredflow.training.pretrain.muon import orthogonalise
from xpredflow.training.pretrain.run import PretrainConfig, Pretraining
from xpredflow.training.pretrain.shapes import SHAPES, tiny

SMALL = PretrainConfig(updates=48, batch=4, warmup=4, vocabulary=704, tokenizer_examples=1200)


@pytest.fixture(autouse=True)
def small_shape(monkeypatch) -> None:
    """The layout of tiny at a size that trains in a second."""

    def shape(vocabulary: int, mask: int, eos: int) -> dict:
        small = {"d_model": 32, "n_heads": 2, "n_kv_heads": 2, "n_layers": 2, "mlp_hidden_size": 48}
        return {**tiny(vocabulary, mask, eos), **small}

    monkeypatch.setitem(SHAPES, "tiny", shape)


@pytest.fixture
def training(tmp_path: Path) -> Pretraining:
    return Pretraining(SMALL, tmp_path / "run")


def test_a_killed_run_ends_like_one_that_was_not(tmp_path: Path) -> None:
    whole = Pretraining(SMALL, tmp_path / "whole", save_every=16)
    reports = list(whole)
    killed = Pretraining(SMALL, tmp_path / "killed", save_every=16)
    original = killed._train_on

    def dies(batch):
        if killed.step == 37:
            raise KeyboardInterrupt
        return original(batch)

    killed._train_on = dies
    with pytest.raises(KeyboardInterrupt):
        list(killed)
    again = Pretraining(SMALL, tmp_path / "killed", resume=True, save_every=16)
    assert again.step == 32
    list(again)
    for name, value in whole.average.items():
        assert torch.equal(value, again.average[name]), name
    for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert all(report.loss < 12 for report in reports)


def test_loss_falls_and_the_checkpoint_decodes(tmp_path: Path) -> None:
    training = Pretraining(replace(SMALL, updates=128, probe_every=64), tmp_path / "run")
    first = training._train_on(chunk(training.mixture, 0, 4, 0.0)[0])[0]
    for _ in training:
        pass
    log = [json.loads(line) for line in (tmp_path / "run/log.jsonl").open()]
    assert log[-1]["loss"] < 0.8 * first
    assert list(log[-1]["solved"]) == ["minimath"]  # without a sandbox no program is judged
    assert plot_losses(tmp_path / "run/log.jsonl", tmp_path / "loss.png")
    training.finish(tmp_path / "model")
    model = load(tmp_path / "model", dtype="float32")
    [done] = generate(model, "Ann has 3 pens.", gen_length=8)
    assert done.passes <= 8


def test_a_checkpoint_can_be_trained_further(tmp_path: Path) -> None:
    first = Pretraining(replace(SMALL, updates=16), tmp_path / "first")
    list(first)
    first.finish(tmp_path / "model", torch.float32)
    start = str(tmp_path / "model")
    further = Pretraining(replace(SMALL, start=start, seed=1), tmp_path / "further")
    for name, value in first.average.items():
        assert torch.equal(value, further.average[name]), name
    for name in ("first", "further"):
        assert (tmp_path / name / "tokenizer.json").is_file()
    vocabularies = [run.mixture.tokenizer.get_vocab() for run in (first, further)]
    assert vocabularies[0] == vocabularies[1]
    list(further)
    assert further.step == 48
    with pytest.raises(InputError, match=r"whose architectures is .* where shape 'tiny-moe'"):
        Pretraining(replace(SMALL, start=start, shape="tiny-moe"), tmp_path / "other")
    with pytest.raises(InputError, match="none of copying, plain: unknown model 'copy'"):
        Pretraining(replace(SMALL, start="copy"), tmp_path / "typo")


def test_batches_depend_on_their_number_alone(training: Pretraining) -> None:
    def ids(number: int) -> list:
        return [b.ids.tolist() for b in chunk(training.mixture, number, 4, 0.25)]

    assert ids(3) == ids(3)
    assert ids(3) != ids(4)


def test_responses_are_filled_with_eos(training: Pretraining) -> None:
    eos = training.model.special.eos
    lengths = []
    for batch in chunk(training.mixture, 0, 4, 0.25):
        lengths.append(batch.ids.shape[1])
        assert not (batch.ids.eq(eos) & ~batch.response).any()
        assert (batch.ids[:, -1] == eos).all()
        start = training.mixture.special[0]
        assert (batch.ids[:, 0] == start).all()
    full = [n for n in lengths if n > training.mixture.response_length]
    assert len(full) >= 4


def test_the_mixture_of_experts_trains_too(tmp_path: Path) -> None:
    training = Pretraining(replace(SMALL, shape="tiny-moe", updates=16, batch=2), tmp_path / "moe")
    before = [p.detach().clone() for p in training.model.parameters()]
    for _ in training:
        pass
    changed = [
        not torch.equal(a, b) for a, b in zip(before, training.model.parameters(), strict=True)
    ]
    assert all(changed)
    routers = [m for m in training.model.modules() if isinstance(m, Router)]
    assert all(router.expert_bias.abs().max() > 0 for router in routers)
    training.finish(tmp_path / "model")
    assert torch.equal(
        load(tmp_path / "model", dtype="float32").state_dict()["model.layers.1.mlp.gate.weight"],
        training.average["model.layers.1.mlp.gate.weight"],
    )


def test_balance_lifts_idle_experts() -> None:
    torch.manual_seed(0)
    router = Router(8, Routing(experts=4, chosen=1, groups=2, kept_groups=2, scale=1.0))
    with torch.no_grad():
        router.weight.normal_(0, 0.1)
        router.expert_bias[:] = torch.tensor([0.5, 0.0, 0.0, 0.0])  # takes everything at first
    balance, x = Balance(router, rate=0.02), torch.randn(400, 8)
    for _ in range(60):
        router(x)
        balance.step()
    load = router(x)[0].flatten().bincount(minlength=4)
    assert load.min() > 40


def test_the_objective_is_equation_one(training: Pretraining) -> None:
    model, batch = training.model, chunk(training.mixture, 0, 4, 0.0)[0]
    noise = draw_masks(batch, None, model.special.eos, torch.Generator().manual_seed(1))
    loss, right = masked_cross_entropy(model, noise)
    total, hits = 0.0, 0
    for i in range(4):
        ids = batch.ids[i].masked_fill(noise.masked[i], model.special.mask).unsqueeze(0)
        everywhere = torch.arange(ids.shape[1]).unsqueeze(0)
        log_p = model.logits(model.embedding[ids], everywhere, everywhere)[0].log_softmax(-1)
        for j in noise.masked[i].nonzero().flatten():
            total -= (noise.weight[i] * log_p[j, batch.ids[i, j]]).item()
            hits += int(log_p[j].argmax() == batch.ids[i, j])
    assert loss.item() == pytest.approx(total / int(batch.response.sum()), rel=1e-4)
    assert right.item() == pytest.approx(hits / int(noise.masked.sum()))


@pytest.mark.parametrize("shape", [(3, 24, 24), (2, 16, 40), (2, 40, 16)])
def test_muon_orthogonalises(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalise(matrices))
    assert 0.8 < values.median() < 1.2
    assert values.max() < 1.3
    # a singular value near 0 stays small: a random square matrix has some, the others have none
    assert values.min() > (0.05 if shape[1] == shape[2] else 0.6)


def test_a_vocabulary_that_is_too_small_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"of minicode fits 64 tokens with EOS.*raise vocabulary"):
        list(Pretraining(replace(SMALL, vocabulary=270), tmp_path))


def test_a_directory_holds_one_run(tmp_path: Path) -> None:
    list(Pretraining(SMALL, tmp_path))
    with pytest.raises(InputError, match="already holds a run: pass --resume"):
        Pretraining(SMALL, tmp_path)
    with pytest.raises(InputError, match=r"lr is 0\.1 but the run .* was started with 0\.004"):
        Pretraining(replace(SMALL, lr=0.1), tmp_path, resume=True)
    longer = Pretraining(replace(SMALL, updates=64), tmp_path, resume=True)
    assert longer.step == 48


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shape": "huge"}, "shape is 'huge': choose one of"),
        ({"tasks": "minicode,chess"}, "task 'chess' cannot be trained on"),
        ({"updates": 0}, "updates is 0"),
        ({"full_share": 1.5}, "full_share is 1.5: give a share from 0 to 1"),
    ],
)
def test_bad_settings_are_named(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SMALL, **values)


def test_the_command_trains_and_resumes(tmp_path: Path) -> None:
    options = ["-o", "batch=2", "-o", "vocabulary=600"]
    options += ["-o", "tokenizer_examples=400", "--threads", "1"]
    run = CliRunner().invoke(app, ["pretrain", str(tmp_path / "r"), "-n", "64", *options])
    assert run.exit_code == 0, run.stderr
    assert "step 64/64" in run.stderr
    assert {f.name for f in (tmp_path / "r").iterdir()} >= {"log.jsonl", "loss.png", "model"}
    load(tmp_path / "r/model")
    again = CliRunner().invoke(app, ["pretrain", str(tmp_path / "r"), "-n", "64", *options])
    assert again.exit_code == 2
    assert "pass --resume" in again.stderr
    wrong = CliRunner().invoke(app, ["pretrain", str(tmp_path / "x"), "-o", "bach=2"])
    assert wrong.exit_code == 2
    assert "did you mean 'batch'" in wrong.stderr


def test_tasks_may_change_on_the_way(tmp_path: Path) -> None:
    later = replace(SMALL, later="16:minimath,sums;32:minicode")
    training = Pretraining(later, tmp_path / "run")
    plain = Pretraining(SMALL, tmp_path / "plain")
    for step in (0, 16, 32):
        training.step = plain.step = step
        ours, theirs = ([b.ids.tolist() for b in run._batches()] for run in (training, plain))
        assert (ours == theirs) == (step == 0)
    training.step = 16
    rows = [row for batch in training._batches() for row in batch.ids.tolist()]
    texts = [training.mixture.tokenizer.decode(row) for row in rows]
    assert sum("####" in text for text in texts) == sum("How many?" in text for text in texts)
    training.step = 32
    text = training.mixture.tokenizer.decode(training._batches()[0].ids[0].tolist())
    assert "def " in text
    mixed_up = replace(SMALL, later="32:minicode;16:minimath,sums")
    assert [mixed_up.tasks_at(step) for step in (0, 16, 32)] == [
        later.tasks_at(step) for step in (0, 16, 32)
    ]
    with pytest.raises(InputError, match="minimat"):
        PretrainConfig(later="8:minimat")
    with pytest.raises(InputError, match="STEP:TASK"):
        PretrainConfig(later="minimath")

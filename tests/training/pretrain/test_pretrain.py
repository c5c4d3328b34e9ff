"""Pretraining: the objective, batches that depend on their number alone, and exact resumption."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch
from small_run import BOTH, SHAPE, SMALL, begin
from sums import Sums

from xpredflow import InputError, generate, load
from xpredflow.models.experts import Router, Routing
from xpredflow.tasks import Problem
from xpredflow.training.common.masking import draw_masks, masked_cross_entropy
from xpredflow.training.common.plots import plot_losses
from xpredflow.training.pretrain.batches import chunk
from xpredflow.training.pretrain.optimizers import Balance
from xpredflow.training.pretrain.trainer import Pretraining, Stage


@pytest.fixture
def training(tmp_path: Path) -> Pretraining:
    return begin(SMALL, tmp_path / "run")


def test_what_a_killed_run_left_behind_is_no_tokenizer_for_another(tmp_path: Path) -> None:
    begin(replace(SMALL, vocabulary=640), tmp_path / "run")  # killed before its first state
    again = begin(SMALL, tmp_path / "run")
    assert len(again.model.embedding) == len(begin(SMALL, tmp_path / "new").model.embedding)


def test_a_killed_run_ends_like_one_that_was_not(tmp_path: Path) -> None:
    whole = begin(SMALL, tmp_path / "whole", save_every=16)
    reports = list(whole)
    killed = begin(SMALL, tmp_path / "killed", save_every=16)
    original = killed._train_on

    def dies(batch):
        if killed.step == 37:
            raise KeyboardInterrupt
        return original(batch)

    killed._train_on = dies
    with pytest.raises(KeyboardInterrupt):
        list(killed)
    again = begin(SMALL, tmp_path / "killed", resume=True, save_every=16)
    assert again.step == 32
    list(again)
    for name, value in whole.average.items():
        assert torch.equal(value, again.average[name]), name
    for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert all(report.loss < 12 for report in reports)


def test_bfloat16_products_change_little_and_attention_stays_in_float32(
    training: Pretraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    attention = torch.nn.functional.scaled_dot_product_attention

    def spy(*inputs, **options):
        seen.append({value.dtype for value in inputs})
        return attention(*inputs, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    batch = chunk(training.mixture, 0, 4, 0.0)[0]
    whole, _ = training._train_on(batch)
    training.config = replace(training.config, bf16=True)
    training.step = 0
    # the first update of a fresh run moves the weights by next to nothing: its rate is warming up
    rounded, _ = training._train_on(batch)
    assert rounded == pytest.approx(whole, rel=0.05)
    assert rounded != whole
    assert seen
    assert all(kinds == {torch.float32} for kinds in seen)


def test_loss_falls_and_the_checkpoint_decodes(tmp_path: Path) -> None:
    training = begin(replace(SMALL, updates=128, probe_every=64), tmp_path / "run")
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
    first = begin(replace(SMALL, updates=16), tmp_path / "first")
    list(first)
    first.finish(tmp_path / "model", torch.float32)
    start = str(tmp_path / "model")
    further = begin(replace(SMALL, seed=1), tmp_path / "further", start=start)
    for name, value in first.average.items():
        assert torch.equal(value, further.average[name]), name
    for name in ("first", "further"):
        assert (tmp_path / name / "tokenizer.json").is_file()
    vocabularies = [run.mixture.tokenizer.get_vocab() for run in (first, further)]
    assert vocabularies[0] == vocabularies[1]
    list(further)
    assert further.step == 48
    with pytest.raises(InputError, match="one of the two"):
        begin(SMALL, tmp_path / "other", start=start, model_config=SHAPE)
    with pytest.raises(InputError, match="unknown model 'copy'"):
        begin(SMALL, tmp_path / "typo", start="copy")


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
    config = replace(SMALL, updates=16, batch=2)
    training = begin(config, tmp_path / "moe", model_config="tiny-moe")
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


def test_a_vocabulary_that_is_too_small_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"of minicode fits 64 tokens with EOS.*raise vocabulary"):
        list(begin(replace(SMALL, vocabulary=270), tmp_path))


def test_a_directory_holds_one_run(tmp_path: Path) -> None:
    list(begin(SMALL, tmp_path))
    with pytest.raises(InputError, match="already holds a run: pass --resume"):
        begin(SMALL, tmp_path)
    with pytest.raises(InputError, match=r"lr is 0\.1 but the run .* was started with 0\.004"):
        begin(replace(SMALL, lr=0.1), tmp_path, resume=True)
    longer = begin(replace(SMALL, updates=64), tmp_path, resume=True)
    assert longer.step == 48


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"updates": 0}, "updates is 0: expected a number ≥ 1"),
        ({"full_share": 1.5}, "full_share is 1.5: expected a number ≤ 1"),
        ({"ema": 1.0}, "ema is 1.0: expected a number < 1"),
    ],
)
def test_bad_settings_are_named(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SMALL, **values)


def test_it_makes_exactly_as_many_updates_as_were_asked_for(tmp_path: Path) -> None:
    config = replace(SMALL, updates=20)
    training = begin(config, tmp_path / "run", save_every=16)
    reports = list(training)
    assert training.step == 20
    assert [report.step for report in reports] == [20]
    assert all(config.rate(step) >= 0 for step in range(64))
    assert config.rate(19) > 0 == config.rate(20)
    # lengthened before its rate falls, it goes on in the middle of a chunk, with the same batches
    flat = replace(SMALL, decay_share=0.0)
    short = begin(replace(flat, updates=20), tmp_path / "short")
    list(short)
    longer = begin(flat, tmp_path / "short", resume=True)
    list(longer)
    whole = begin(flat, tmp_path / "whole")
    list(whole)
    for name, value in whole.average.items():
        assert torch.equal(value, longer.average[name]), name


def test_tasks_may_change_on_the_way(tmp_path: Path) -> None:
    code, sums = BOTH[0], Sums()
    stages = (Stage(16, (BOTH[1], sums)), Stage(32, ("minicode",)))
    training = begin(SMALL, tmp_path / "run", schedule=stages)
    plain = begin(SMALL, tmp_path / "plain")
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
    mixed_up = begin(SMALL, tmp_path / "mixed", schedule=stages[::-1])
    assert [[s.name for s in mixed_up.sources_at(step)] for step in (0, 16, 32)] == [
        ["minicode", "minimath"],
        ["minimath", "sums"],
        [code.name],
    ]
    with pytest.raises(InputError, match="minimat"):
        begin(SMALL, tmp_path / "typo", schedule=(Stage(8, ("minimat",)),))
    with pytest.raises(InputError, match="'gsm8k' has no right answers to learn from"):
        begin(SMALL, tmp_path / "graded", schedule=(Stage(8, ("gsm8k",)),))


class Few:
    """Three training problems of one's own."""

    name, response_length = "few", 16

    def size(self, split: str) -> int:
        return 3

    def problem(self, split: str, index: int) -> Problem:
        return Problem(str(index), "abc"[index], 1, {})

    def answer(self, problem: Problem, rng: Random) -> str:
        return problem.prompt * 2


def test_a_task_of_ones_own_may_have_few_problems(tmp_path: Path) -> None:
    config = replace(SMALL, updates=2, vocabulary=300, tokenizer_examples=9)
    training = Pretraining(config, tmp_path / "run", (Few(),), model_config=SHAPE)
    list(training)
    text = training.mixture.tokenizer.decode(training._batches()[0].ids[0].tolist())
    assert text in {"aaa", "bbb", "ccc"}

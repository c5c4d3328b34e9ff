"""What every family owes: it decodes, fills gaps, is cached, aligned, saved; or says why not."""

from copy import deepcopy
from pathlib import Path

import pytest
import torch
from dense_checkpoints import ANCHORED, BLOCKED, KINDS, SHIFTED, write_kind
from family_models import FAMILIES, load_family
from own_answers import own_answers
from parity_task import Parity, Words

import xpredflow.models as models
from xpredflow import InputError, decode_steps, generate
from xpredflow.decoders import DECODERS
from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.run import align
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.rollouts import Setup
from xpredflow.training.policy.run import PolicyTraining
from xpredflow.training.softmask.config import SoftMaskConfig
from xpredflow.training.softmask.run import train_softmask

TIED = [name for name, config in KINDS.items() if config["tie_word_embeddings"]]
PROMPTS = [[5, 6, 7], list(range(20, 33))]
# one of each kind of attention and reading, decoded at length; of the others two passes are enough
AT_LENGTH = ("LLaDA2", "A2D-Qwen3", "Fast-dLLM-v2", "LLaDA-MoE")
# one of each kind of weights: the others differ in what decoding shows, not in training
TRAINED = ["Qwen3-0.6B-diffusion-mdlm-v0.1", ANCHORED[0], SHIFTED[2], "LLaDA-MoE-7B-A1B"]


@pytest.fixture(scope="module", params=FAMILIES)
def model(request, tmp_path_factory) -> MaskedDiffusionModel:
    return load_family(tmp_path_factory.mktemp("family"), request.param)


def shifted(model: MaskedDiffusionModel) -> bool:
    return model.shape.shift == 1


def test_decoders_decode_it(model) -> None:
    prompts, length, cap = (PROMPTS, 10, 6) if model.family in AT_LENGTH else (PROMPTS[:1], 5, 2)
    for name, entry in DECODERS.entries().items():
        shared = {"decoder": name, "gen_length": length, "budget": cap, "stop_at_eos": False}
        if getattr(entry.item, "shadows", False) and shifted(model):
            with pytest.raises(InputError, match="reads shadows"):
                generate(model, prompts, **shared)
            continue
        for done in generate(model, prompts, **shared):
            assert len(done.all_ids) == length, name
            assert 1 <= done.passes <= cap, name
            assert model.special.mask not in done.all_ids, name


def test_the_cache_is_exact_and_rows_do_not_depend_on_each_other(model, monkeypatch) -> None:
    shared = {"decoder": "threshold:0.3", "gen_length": 12, "stop_at_eos": False}
    together = [d.all_ids for d in generate(model, PROMPTS, **shared)]
    alone = [generate(model, [p], **shared, first_row=i)[0] for i, p in enumerate(PROMPTS)]
    assert together == [d.all_ids for d in alone]
    assert (model.new_cache(1, 8) is None) == (model.block_size is None)
    monkeypatch.setattr(model, "new_cache", lambda slots, length: None)
    assert together == [d.all_ids for d in generate(model, PROMPTS, **shared)]


def test_an_approximate_cache_reads_a_block_first_as_if_there_were_none(model) -> None:
    if model.block_size is not None:
        assert model.new_frozen_cache(1, 8) is None
        with pytest.raises(InputError, match="exact cache already"):
            generate(model, PROMPTS, cache="dual")
        return
    shared = {"decoder": "mask", "gen_length": 8, "block_length": 4, "stop_at_eos": False}
    once = [
        [d.all_ids for d in generate(model, PROMPTS, **shared, budget=2, cache=cache)]
        for cache in (None, "dual")
    ]
    assert once[0] == once[1]
    [_, row] = generate(model, PROMPTS, **shared, budget=4, cache="dual")
    [alone] = generate(model, PROMPTS[1:], **shared, budget=4, cache="dual")
    assert row.all_ids == alone.all_ids


def test_gaps_are_filled_and_nothing_else(model) -> None:
    text = [-1, 4, 5, -1, -1, 8, 9, 10, 11, -1, 13]
    for step in decode_steps(model, [text], decoder="flow"):
        places = step.positions[step.positions >= 0].tolist()
        assert {*places} <= {0, 3, 4, 9}
        for done in step.finished:
            assert len(done.ids) == 4


def test_hidden_states_give_the_logits(model) -> None:
    inputs = torch.randn(2, 12, 32, generator=torch.Generator().manual_seed(1))
    columns = torch.arange(12).expand(2, -1)
    with torch.no_grad():
        head = model.trunk()[2]
        hidden = head(model.hidden(inputs, columns, columns[:, 5:]))
        torch.testing.assert_close(hidden, model.logits(inputs, columns, columns[:, 5:]))


def test_it_is_saved_and_loaded_as_it_was(model, tmp_path) -> None:
    models.save(model, tmp_path / "saved")
    again = models.load(tmp_path / "saved")
    inputs = torch.randn(1, 12, 32, generator=torch.Generator().manual_seed(2))
    columns = torch.arange(12)[None]
    with torch.no_grad():
        assert torch.equal(
            again.logits(inputs, columns, columns), model.logits(inputs, columns, columns)
        )
    assert again.special == model.special
    for name in ("shape", "block_size", "anchored_at_response", "max_length"):
        assert getattr(again, name) == getattr(model, name)


@pytest.fixture(scope="module", params=TRAINED)
def trained(request, tmp_path_factory) -> MaskedDiffusionModel:
    return load_family(tmp_path_factory.mktemp("trained"), request.param)


def test_alignment_keeps_the_embeddings(trained, tmp_path) -> None:
    aligned(trained, tmp_path, lora=0)


def test_adapters_leave_a_tied_head_alone(tmp_path) -> None:
    model = models.load(write_kind(tmp_path, TRAINED[0]))
    aligned(model, tmp_path / "run", lora=2)


def aligned(trained: MaskedDiffusionModel, out: Path, lora: int) -> None:
    before = {name: tensor.clone() for name, tensor in trained.state_dict().items()}
    config = AlignConfig(updates=3, batch=4, warmup=1, lr=1e-2, chunk=13, lora_rank=lora)
    done = align(trained, own_answers(10), config, out=out)
    after = models.load(done.checkpoint)
    assert torch.equal(after.embedding, trained.embedding)
    moved = {n for n, tensor in after.state_dict().items() if not torch.equal(tensor, before[n])}
    assert any("q_proj" in name for name in moved)
    # tied: the head is the coordinate system too, and neither stored twice nor moved
    assert ("lm_head.weight" in after.state_dict()) == ("lm_head.weight" in before)
    assert (after.trunk()[2].weight is after.embedding) == getattr(trained, "tied", False)
    assert done.after is not None
    assert after.defaults.aligned


def test_soft_masks_are_learned(trained, tmp_path) -> None:
    config = SoftMaskConfig(updates=2, batch=4, warmup=1, lr=1e-3, holdout=2)
    done = train_softmask(trained, own_answers(10), config, out=tmp_path)
    after = models.load(done.checkpoint)
    assert not torch.equal(after.embedding, trained.embedding)
    assert (after.trunk()[2].weight is after.embedding) == getattr(trained, "tied", False)


def test_a_policy_is_trained_on_it(trained, tmp_path) -> None:
    model = deepcopy(trained)
    model.tokenizer = Words()
    config = PolicyConfig(
        updates=1, prompts=2, group=3, hidden=8, gen_length=8, init_prompts=2, init_fits=2
    )
    training = PolicyTraining(Setup(model, Parity(), config), list(range(5)), tmp_path)
    assert len(list(training)) >= 1
    [done] = generate(model, [[1, 2]], policy=f"learned:{tmp_path / 'policy'}", gen_length=8)
    assert len(done.all_ids) == 8


def test_the_list_of_what_is_trained_has_every_kind() -> None:
    assert {*TRAINED} & {*TIED}
    assert {*TRAINED} & {*SHIFTED} & {*BLOCKED}
    assert {*TRAINED} & {*ANCHORED}

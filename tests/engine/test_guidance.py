"""Classifier-free guidance: LLaDA's formula, two passes a step, and every decoder takes it."""

import pytest
import torch
from builders import write_checkpoint
from toy import MASK, ToyModel, prompts

from xpredflow import InputError, generate, load
from xpredflow.decoders import DECODERS
from xpredflow.engine.guidance import guided_logits


def reference(model: ToyModel, prompt: list[int], length: int, scale: float) -> list[int]:
    """LLaDA's loop with guidance, written plainly: one token per step, the surest first."""
    ids = torch.tensor(prompt + [MASK] * length)
    hidden = ids.clone()
    hidden[: len(prompt)] = MASK
    places = torch.arange(len(ids))[None]
    for _ in range(length):
        blind = torch.where(torch.arange(len(ids)) < len(prompt), hidden, ids)
        z, u = (model.logits(model.embedding[x][None], places, places)[0] for x in (ids, blind))
        logits = u + (scale + 1) * (z - u)
        logits[:, MASK] = -torch.inf
        best, token = logits.softmax(-1).max(-1)
        at = int(best.masked_fill(ids != MASK, -1).argmax())
        ids[at] = token[at]
    return ids[len(prompt) :].tolist()


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_it_is_that_of_llada(scale: float) -> None:
    model, several = ToyModel(1), prompts(4, 1)
    done = generate(
        model, several, decoder="mask", gen_length=8, cfg_scale=scale, stop_at_eos=False
    )
    assert [d.all_ids for d in done] == [reference(model, p, 8, scale) for p in several]
    plain = generate(model, several, decoder="mask", gen_length=8, stop_at_eos=False)
    assert [d.all_ids for d in plain] != [d.all_ids for d in done]


def test_a_step_is_two_passes_and_both_count() -> None:
    model = ToyModel(2)
    [done] = generate(model, prompts(1), decoder="mask", gen_length=6, cfg_scale=1.0)
    assert done.passes == model.passes == 12  # full is a step per position
    model = ToyModel(2)
    [done] = generate(model, prompts(1), decoder="mask", gen_length=6, cfg_scale=1.0, budget=7)
    assert done.passes == model.passes == 6  # a number is one of passes
    with pytest.raises(InputError, match=r"a step costs 2 passes, so that 3 block\(s\) need 6"):
        generate(
            model, prompts(1), decoder="mask", gen_length=6, block_length=2, cfg_scale=1, budget=5
        )


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_decoder_takes_it(decoder: str) -> None:
    several, model = prompts(4), ToyModel(3)
    options = {"decoder": decoder, "gen_length": 10, "block_length": 5, "seed": 1}
    done = generate(model, several, cfg_scale=0.7, **options)
    assert model.passes >= max(d.passes for d in done)
    assert all(MASK not in d.all_ids and d.passes % 2 == 0 for d in done)
    for i, prompt in enumerate(several):
        [alone] = generate(model, [prompt], cfg_scale=0.7, first_row=i, **options)
        assert (alone.all_ids, alone.passes) == (done[i].all_ids, done[i].passes)


def test_only_what_is_given_is_hidden() -> None:
    model = ToyModel()
    inputs = torch.randn(1, 3, 16)
    given, places = torch.tensor([[True, False, False]]), torch.arange(3)[None]
    z = model.logits(inputs, places, places)
    blind = inputs.clone()
    blind[0, 0] = model.embedding[MASK]
    u = model.logits(blind, places, places)
    torch.testing.assert_close(
        guided_logits(model, inputs, given, places, places, 1.5), u + 2.5 * (z - u)
    )
    nothing = torch.zeros_like(given)
    torch.testing.assert_close(guided_logits(model, inputs, nothing, places, places, 1.5), z)


def test_a_block_causal_model_is_guided_without_its_cache(tmp_path) -> None:
    write_checkpoint(tmp_path, "llada2")
    model = load(tmp_path, device="cpu")
    options = {"decoder": "threshold:0.5", "gen_length": 20}
    plain = generate(model, [[5, 6, 7]], **options)
    slight = generate(model, [[5, 6, 7]], cfg_scale=1e-6, **options)
    assert [d.all_ids for d in plain] == [d.all_ids for d in slight]
    assert slight[0].passes == 2 * plain[0].passes

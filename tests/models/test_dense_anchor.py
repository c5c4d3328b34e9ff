"""Blocks that begin with the response: as dllm's sampler pads a prompt to a whole block."""

import pytest
import torch
from dense_checkpoints import ANCHORED, write_kind
from test_dense_transformers import SMALL, written

import xpredflow.models as models
from xpredflow import generate

B, MASK = 8, 118


def padded_by_hand(network, prompt: list[int], length: int) -> list[int]:
    """One token per pass; blocks by column of a padded row, rotary positions of real tokens."""
    pad = -len(prompt) % B
    columns = torch.arange(pad + len(prompt) + length + (-length % B))
    ids = torch.full((len(columns),), MASK)
    ids[pad : pad + len(prompt)] = torch.tensor(prompt)
    start, real = pad + len(prompt), columns >= pad
    sees = (columns[None, :] // B <= columns[:, None] // B) & real[None, :]
    sees |= torch.eye(len(columns), dtype=torch.bool)  # padding sees itself, or softmax is NaN
    mask = torch.zeros(sees.shape).masked_fill(~sees, torch.finfo(torch.float32).min)
    positions = (columns - pad).clamp(min=0)
    for first in range(start, start + length, B):
        block = range(first, min(first + B, start + length))
        for _ in block:
            with torch.no_grad():
                out = network(
                    input_ids=ids[None],
                    attention_mask=mask[None, None],
                    position_ids=positions[None],
                ).logits[0]
            out[:, MASK] = -torch.inf
            probability, token = out.softmax(-1).max(-1)
            best = max((c for c in block if ids[c] == MASK), key=lambda c: probability[c].item())
            ids[best] = token[best]
    return ids[start : start + length].tolist()


@pytest.mark.parametrize("prompt", [[5, 6, 7], list(range(8)), list(range(20, 33))], ids=len)
def test_the_text_is_that_of_a_padded_prompt(tmp_path, prompt):
    network = written(tmp_path, "qwen3")
    model = models.load(tmp_path, mask=MASK, shift=0, block=B, anchor="response")
    others = [[9] * 4, [3] * 17]  # in the same batch, in slots that are used again
    [done, *_] = generate(
        model, [prompt, *others], decoder="mask", gen_length=12, stop_at_eos=False, max_batch=2
    )
    assert done.all_ids == padded_by_hand(network, prompt, 12)
    assert SMALL["eos_token_id"] == model.special.eos


@pytest.mark.parametrize("decoder", ["mask", "wino"])
def test_the_cache_shows_nothing_of_the_row_before(tmp_path, decoder, monkeypatch):
    model = models.load(write_kind(tmp_path, ANCHORED[0]), block=B)
    prompts = [[7] * n for n in (21, 3, 8, 1, 14)]
    shared = {"decoder": decoder, "gen_length": 20, "stop_at_eos": False}
    queued = generate(model, prompts, max_batch=1, **shared)
    monkeypatch.setattr(model, "new_cache", lambda slots, length: None)
    whole = generate(model, prompts, **shared)
    assert [d.all_ids for d in queued] == [d.all_ids for d in whole]


def test_where_blocks_begin_is_told_by_the_name_and_can_be_said(tmp_path):
    directory = write_kind(tmp_path, ANCHORED[0])
    assert models.load(directory).anchored_at_response
    assert models.load(directory).block_size == 32
    assert not models.load(directory, anchor="start").anchored_at_response
    assert not models.load(f"{directory}+block=0").anchored_at_response
    # a gap stands where it stands: blocks are then counted from the start
    [done] = generate(models.load(directory), [[1, 2, -1, 4]], decoder="mask")
    assert len(done.ids) == 1

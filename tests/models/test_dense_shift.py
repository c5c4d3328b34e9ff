"""Shifted logits: read one position before, at position 0, in gaps, at block borders, cached."""

import pytest
import torch
from dense_checkpoints import BLOCK, SHIFTED, write_kind

import xpredflow.models as models
from xpredflow import InputError, generate

FAST = "Fast_dLLM_v2_1.5B"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Dream, and the same weights read without its shift."""
    directory = write_kind(tmp_path_factory.mktemp("shift"), "Dream-v0-Instruct-7B")
    return models.load(directory), models.load(directory, shift=0)


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    return models.load(write_kind(tmp_path_factory.mktemp("fast"), FAST))


def rows(length, count=2, seed=0):
    return torch.randn(count, length, 32, generator=torch.Generator().manual_seed(seed))


def logits(model, inputs, positions=None, columns=None):
    everywhere = torch.arange(inputs.shape[1]).expand(len(inputs), -1)
    positions = everywhere if positions is None else positions
    with torch.no_grad():
        return model.logits(inputs, positions, everywhere if columns is None else columns)


@pytest.mark.parametrize("name", SHIFTED)
def test_every_shifted_kind_says_so(tmp_path, name):
    assert models.load(write_kind(tmp_path, name)).shape.shift == 1


def test_a_position_is_read_one_before_and_the_first_keeps_its_own(pair):
    shifted, plain = pair
    expected = logits(plain, rows(12))
    got = logits(shifted, rows(12))
    torch.testing.assert_close(got[:, 1:], expected[:, :-1])
    torch.testing.assert_close(got[:, 0], expected[:, 0])


def test_columns_may_be_any_and_padding_on_either_side(pair):
    shifted, plain = pair
    inputs = rows(9, 1)
    expected = logits(plain, inputs)[0]
    for left in (0, 3):
        padded = torch.cat((rows(left, 1, 5), inputs, rows(3 - left, 1, 6)), dim=1)
        positions = torch.full((1, 12), -1)
        positions[0, left : left + 9] = torch.arange(9)
        columns = torch.tensor([[left + 7, left, left + 1, left + 7]])
        got = logits(shifted, padded, positions, columns)[0]
        torch.testing.assert_close(got, expected[[6, 0, 0, 6]], rtol=1e-4, atol=1e-4)


def test_the_first_token_of_a_gap_is_read_at_the_last_given_one(pair):
    shifted, plain = pair
    text = [5, 9, -1, -1, 40, 41, -1, 8]
    [done] = generate(shifted, [text], decoder="mask", budget=1)
    ids = torch.tensor([258 if token < 0 else token for token in text])
    expected = logits(plain, plain.embedding[ids][None])[0]
    expected[:, 258] = -torch.inf
    assert done.ids == expected[[1, 2, 5]].argmax(-1).tolist()
    [first] = generate(shifted, [[-1, 7, 8]], decoder="mask", budget=1)
    ids = torch.tensor([258, 7, 8])
    alone = logits(plain, plain.embedding[ids][None])[0, 0]
    alone[258] = -torch.inf
    assert first.ids == [alone.argmax().item()]


def test_cached_blocks_begin_with_the_last_state_of_the_block_before(fast):
    row = rows(3 * BLOCK)
    expected = logits(fast, row)
    cache, slots = fast.new_cache(3, 3 * BLOCK), torch.tensor([2, 0])

    def step(start, end, changed=0.0):
        positions = torch.arange(start, end).expand(2, -1)
        columns = positions - start
        with torch.no_grad():
            return fast.logits(row[:, start:end] + changed, positions, columns, cache, slots)

    step(0, BLOCK, changed=0.5)  # not final yet
    got = step(0, 2 * BLOCK)
    torch.testing.assert_close(got, expected[:, : 2 * BLOCK], rtol=1e-4, atol=1e-4)
    for start in (1, 2, 2):
        got = step(start * BLOCK, (start + 1) * BLOCK)
        wanted = expected[:, start * BLOCK : (start + 1) * BLOCK]
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("decoder", ["mask", "threshold:0.5", "flow"])
def test_decoding_is_the_same_with_and_without_a_cache(fast, decoder, monkeypatch):
    prompts = [[1, 2, 3], list(range(8)), list(range(13)), [4] * 16]
    shared = {"decoder": decoder, "gen_length": 20, "stop_at_eos": False, "max_batch": 2}
    cached = generate(fast, prompts, **shared)
    monkeypatch.setattr(fast, "new_cache", lambda slots, length: None)
    assert [d.all_ids for d in cached] == [d.all_ids for d in generate(fast, prompts, **shared)]


def test_a_gap_in_the_row_is_refused_without_a_cache(pair):
    with pytest.raises(ValueError, match="every position from 0 on"):
        logits(pair[0], rows(4), torch.arange(3, 7).expand(2, -1))


def test_shadows_are_refused_with_the_reason(pair):
    with pytest.raises(InputError, match="predicts a position from the one before it"):
        generate(pair[0], [[1, 2]], decoder="wino", gen_length=4)

"""The cache: equal to no cache, whatever the slots, and never showing an earlier row."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from xpredflow.models.positions import Rows

BLOCK = 8


def alone(model, row):
    columns = torch.arange(len(row))[None]
    with torch.no_grad():
        return model.logits(row[None], columns, columns)[0]


def batch(rows, spans):
    """Rows cut to their spans, right-padded: inputs, positions and the columns of everything."""
    longest = max(end - start for start, end in spans)
    inputs = torch.full((len(rows), longest, rows[0].shape[1]), 9.0)
    positions = torch.full((len(rows), longest), -1)
    for i, (row, (start, end)) in enumerate(zip(rows, spans, strict=True)):
        inputs[i, : end - start] = row[start:end]
        positions[i, : end - start] = torch.arange(start, end)
    return inputs, positions


def run(model, cache, rows, spans, slots):
    """One cached pass; checks every real position against the row computed alone and uncached."""
    inputs, positions = batch(rows, spans)
    columns = torch.arange(positions.shape[1]).expand(len(rows), -1)
    with torch.no_grad():
        got = model.logits(inputs, positions, columns, cache, slots and torch.tensor(slots))
    for i, (row, (start, end)) in enumerate(zip(rows, spans, strict=True)):
        torch.testing.assert_close(
            got[i, : end - start], alone(model, row[:end])[start:end], rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("slots", [None, [0, 1, 2], [2, 0, 1], [1, 2, 3]])
def test_rows_of_different_lengths_agree_with_no_cache(llada2, slots):
    generator = torch.Generator().manual_seed(1)
    rows = [torch.randn(40, 32, generator=generator) for _ in range(3)]
    cache = llada2.new_cache(5 if slots else 3, 48)
    run(llada2, cache, rows, [(0, 8), (0, 24), (0, 16)], slots)
    # The current block again with other contents, as decoding does it.
    rows = [row.clone() for row in rows]
    rows[0][:8] += 0.5
    rows[1][16:24] -= 0.5
    run(llada2, cache, rows, [(0, 8), (16, 24), (8, 16)], slots)
    # On to the next block: the finished one is given once more, so that its final values stay.
    rows[0][:8] -= 1.0
    run(llada2, cache, rows, [(0, 16), (16, 32), (8, 24)], slots)
    # Rows end inside a block.
    run(llada2, cache, rows, [(8, 21), (24, 37), (16, 25)], slots)


def test_a_subset_of_rows_may_go_on(llada2):
    rows = [torch.randn(24, 32) for _ in range(3)]
    cache = llada2.new_cache(3, 24)
    run(llada2, cache, rows, [(0, 8), (0, 16), (0, 8)], [0, 1, 2])
    run(llada2, cache, [rows[2], rows[0]], [(0, 24), (0, 16)], [2, 0])
    run(llada2, cache, [rows[1]], [(8, 24)], [1])


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=4), st.data()
)
def test_a_reused_slot_shows_nothing_of_the_row_before(llada2, lengths, data):
    cache = llada2.new_cache(4, 40)
    slots = data.draw(st.permutations(range(4)))[: len(lengths)]
    for ends in zip(*lengths, strict=True):  # the first tenants, then the second ones
        rows = [torch.randn(end, 32) for end in ends]
        if data.draw(st.booleans()):
            cache.release(*slots)
        middle = [(0, min(end, BLOCK)) for end in ends]
        run(llada2, cache, rows, middle, slots)
        run(llada2, cache, rows, [(0, end) for end in ends], slots)


@pytest.mark.parametrize("release", [True, False])
def test_a_row_of_nan_leaves_nothing_behind(llada2, release):
    cache = llada2.new_cache(2, 32)
    long, short = torch.randn(32, 32), torch.randn(11, 32)
    positions = torch.arange(32).expand(2, -1)
    with torch.no_grad():
        poisoned = torch.stack((long * float("nan"), long))
        llada2.logits(poisoned, positions, positions, cache, torch.tensor([0, 1]))
    if release:
        cache.release(0)
    run(llada2, cache, [short, long], [(0, 11), (24, 32)], [0, 1])


def test_consecutive_slots_are_read_in_place(llada2):
    cache = llada2.new_cache(4, 16)
    positions = torch.arange(8).expand(2, -1)
    for slots, in_place in (([1, 2], True), ([2, 1], False)):
        rows = Rows.read(positions, torch.tensor(slots))
        view = cache.open(positions, rows, torch.tensor(slots))
        keys, _ = view.update(0, torch.ones(2, 8, 2, 16), torch.ones(2, 8, 2, 16))
        storage = cache.keys[0].untyped_storage().data_ptr()
        assert (keys.untyped_storage().data_ptr() == storage) == in_place


def test_misuse_is_refused(llada2):
    cache = llada2.new_cache(2, 16)

    def step(start, end, slots):
        positions = torch.arange(start, end).expand(len(slots), -1)
        inputs = torch.randn(*positions.shape, 32)
        with torch.no_grad():
            llada2.logits(inputs, positions, positions - start, cache, torch.tensor(slots))

    with pytest.raises(ValueError, match="start at position 8, but only the first 0"):
        step(8, 16, [0])
    with pytest.raises(ValueError, match="distinct"):
        step(0, 8, [1, 1])
    with pytest.raises(ValueError, match="below 2"):
        step(0, 8, [2])
    with pytest.raises(ValueError, match="position 16 in a cache of 16"):
        step(0, 17, [0])
    step(0, 8, [0])
    step(8, 16, [0])
    cache.release(0)
    with pytest.raises(ValueError, match="slot 0"):
        step(8, 16, [0])
    with pytest.raises(ValueError, match="2 inputs for positions 0 to 2"), torch.no_grad():
        llada2.logits(
            torch.randn(1, 2, 32),
            torch.tensor([[0, 2]]),
            torch.tensor([[0]]),
            cache,
            torch.tensor([0]),
        )
    positions = torch.arange(8)[None]
    with pytest.raises(ValueError, match="no gradients"):
        llada2.logits(torch.randn(1, 8, 32), positions, positions, cache, torch.tensor([0]))

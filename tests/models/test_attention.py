"""Attention whatever the kernel: its result in any layout, and a mask only where one is needed."""

import pytest
import torch
import torch.nn.functional as F

from xpredflow.models import attention
from xpredflow.models.positions import Rows
from xpredflow.types import shadow

BLOCK = 8  # of the tests' LLaDA2


def memory_efficient(out):
    """(B, L, H, D) in memory, as the memory-efficient kernel returns it."""
    return out.transpose(1, 2).contiguous().transpose(1, 2)


def flash(out):
    """The same with heads as wide as the kernel pads them to, and cut."""
    padded = F.pad(out, (0, 5)).transpose(1, 2).contiguous().transpose(1, 2)
    return padded[..., : out.shape[-1]]


class Kernel:
    """In place of scaled_dot_product_attention: keeps the masks that it was given."""

    def __init__(self, lay_out=lambda out: out):
        self.lay_out, self.masks = lay_out, []
        self.compute = F.scaled_dot_product_attention

    def scaled_dot_product_attention(self, q, k, v, attn_mask=None):
        self.masks.append(attn_mask)
        return self.lay_out(self.compute(q, k, v, attn_mask=attn_mask))


def rows(lengths, *, shadows=False):
    """Left-padded positions, with the shadows of the last four behind them if asked."""
    width = max(lengths)
    padded = [[-1] * (width - n) + list(range(n)) for n in lengths]
    positions = torch.tensor(padded)
    if shadows:
        positions = torch.cat((positions, shadow(positions[:, -4:])), dim=1)
    return positions


def logits(model, positions, cache=None):
    draw = torch.Generator().manual_seed(3)
    inputs = torch.randn(*positions.shape, 32, generator=draw)
    columns = torch.arange(positions.shape[1]).expand(len(positions), -1)
    with torch.no_grad():
        return model.logits(inputs, positions, columns, cache)


CALLS = {
    "one row": rows([12]),
    "equal rows": rows([12, 12]),
    "padded rows": rows([12, 7]),
    "shadows": rows([12, 7], shadows=True),
}


@pytest.mark.parametrize("lay_out", [memory_efficient, flash])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("cached", [False, True])
def test_any_layout_of_the_result_will_do(model, monkeypatch, lay_out, call, cached):
    positions = CALLS[call]

    def run():
        return logits(model, positions, model.new_cache(2, 32) if cached else None)

    expected = run()
    monkeypatch.setattr(attention, "F", Kernel(lay_out))
    assert torch.equal(run(), expected)


def test_rows_of_one_length_have_no_mask(model, family, monkeypatch):
    kernel = Kernel()
    monkeypatch.setattr(attention, "F", kernel)
    length = BLOCK if family == "llada2" else 12  # one block, where there are blocks
    plain = logits(model, rows([length, length]))
    assert kernel.masks == [None] * model.shape.layers
    # the same with a mask, because a longer neighbour is there
    padded = logits(model, rows([length, length, length + 4]))
    assert all(mask is not None for mask in kernel.masks[model.shape.layers :])
    with torch.no_grad():
        again = model.logits(
            torch.randn(2, length, 32, generator=torch.Generator().manual_seed(3)),
            torch.arange(length).expand(2, -1),
            torch.arange(length).expand(2, -1),
        )
    torch.testing.assert_close(plain, again)
    assert padded.isfinite().all()


def test_a_mask_that_hides_nothing_changes_nothing(model, monkeypatch):
    positions = rows([BLOCK, BLOCK])
    plain = logits(model, positions)
    monkeypatch.setattr(Rows, "all_visible", lambda *_, **__: False)
    torch.testing.assert_close(logits(model, positions.clone()), plain, rtol=1e-5, atol=1e-5)


def test_the_current_block_behind_a_cache_has_no_mask(llada2, monkeypatch):
    """As decoding asks: everything before the block is stored, the block alone is given."""
    cache = llada2.new_cache(2, 24)
    prompts, block = rows([16, 16]), torch.arange(16, 24).expand(2, -1)
    logits(llada2, prompts, cache)
    kernel = Kernel()
    monkeypatch.setattr(attention, "F", kernel)
    without = logits(llada2, block, cache)
    assert kernel.masks == [None] * llada2.shape.layers
    monkeypatch.setattr(Rows, "all_visible", lambda *_, **__: False)
    torch.testing.assert_close(logits(llada2, block.clone(), cache), without, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("positions", "block", "cached", "seen"),
    [
        ([[0, 1, 2], [0, 1, 2]], None, False, True),
        ([[0, 1, 2], [-1, 0, 1]], None, False, False),
        ([[0, 1, -2], [0, 1, -3]], None, False, False),
        ([[0, 1, 2], [0, 1, 2]], 2, False, False),
        ([[0, 1], [0, 1]], 2, False, True),
        ([[4, 5], [4, 5]], 2, True, True),
        ([[4, 5], [2, 3]], 2, True, False),  # the second row has fewer keys
        ([[3, 4], [3, 4]], 2, True, False),
        ([[-1, -1]], None, False, False),
    ],
)
def test_when_everything_is_seen(positions, block, cached, seen):
    found = Rows.read(torch.tensor(positions))
    assert found.all_visible(block, found.ends if cached else None) == seen


def test_positions_are_read_once_while_they_do_not_change(model, monkeypatch):
    read, positions = [], rows([12, 7])
    monkeypatch.setattr(
        Rows, "read", classmethod(lambda cls, *a, of=Rows.read: read.append(1) or of(*a))
    )
    first = logits(model, positions)
    assert torch.equal(logits(model, positions), first)
    assert len(read) == 1
    positions[1] = torch.arange(12)  # changed in place: nothing old may be used
    fresh = logits(model, positions.clone())
    assert torch.equal(logits(model, positions), fresh)
    assert len(read) == 3


def test_inference_tensors_are_read_anew(model):
    with torch.inference_mode():
        assert torch.equal(logits(model, rows([12, 7])), logits(model, rows([12, 7])))


def test_nothing_is_remembered_of_positions_that_are_gone(model):
    known = attention._PASSES._known
    positions = rows([5])
    logits(model, positions)
    before = len(known)
    del positions
    assert len(known) == before - 1

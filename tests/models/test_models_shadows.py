"""Shadows: queries beside the row that cannot see what stands at their own position."""

import pytest
import torch
from builders import write_checkpoint

import xpredflow.models as models
from xpredflow.types import shadow

LENGTH, AT = 12, 9


def logits(model, row, shadowed):
    """Logits of a row's positions and of the shadows, which read the mask embedding."""
    inputs = torch.cat((row, model.embedding[model.special.mask].expand(len(shadowed), -1)))
    positions = torch.cat(
        (torch.arange(len(row)), shadow(torch.tensor(shadowed, dtype=torch.long)))
    )
    columns = torch.arange(len(inputs))[None]
    with torch.no_grad():
        return model.logits(inputs[None], positions[None], columns)[0].split(len(row))


def a_row(width=32):
    return torch.randn(LENGTH, width, generator=torch.Generator().manual_seed(5))


def test_the_row_does_not_see_its_shadows(model):
    plain, *_ = logits(model, a_row(), [])
    beside, _ = logits(model, a_row(), [3, AT, 10])
    torch.testing.assert_close(beside, plain, rtol=1e-4, atol=1e-4)


def test_the_shadow_of_a_mask_says_what_the_mask_says(model):
    row = a_row()
    row[AT] = model.embedding[model.special.mask]
    own, shadows = logits(model, row, [AT])
    torch.testing.assert_close(shadows[0], own[AT], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "one_layer"), [("llada", {"n_layers": 1}), ("llada2", {"num_hidden_layers": 1})]
)
def test_a_shadow_sees_every_token_but_its_own(name, one_layer, tmp_path):
    # with more layers other positions pass on what they saw of it, as WINO has it
    write_checkpoint(tmp_path, name, **one_layer)
    model, row = models.load(tmp_path), a_row()
    _, before = logits(model, row, [AT, AT + 1])
    row[AT] += 1.0
    _, after = logits(model, row, [AT, AT + 1])
    torch.testing.assert_close(after[0], before[0])
    assert (after[1] - before[1]).abs().max() > 1e-3


def test_shadows_see_each_other(model):
    _, alone = logits(model, a_row(), [AT])
    _, together = logits(model, a_row(), [AT, AT + 1])
    assert (together[0] - alone[0]).abs().max() > 1e-3


def test_cached_blocks_are_seen_by_shadows_too(llada2):
    row, size = a_row(), llada2.block_size
    assert size == 8
    own, expected = logits(llada2, row, [AT, AT + 1])
    cache = llada2.new_cache(1, 16)
    columns = torch.arange(size)[None]
    inputs = torch.cat((row[size:], llada2.embedding[llada2.special.mask].expand(2, -1)))
    positions = torch.cat((torch.arange(size, LENGTH), shadow(torch.tensor([AT, AT + 1]))))
    for _ in range(2):  # the second pass must not see the shadows of the first
        with torch.no_grad():
            llada2.logits(row[None, :size], columns, columns, cache)
            wanted = torch.arange(len(inputs))[None]
            got = llada2.logits(inputs[None], positions[None], wanted, cache)[0]
        torch.testing.assert_close(got[:4], own[size:], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(got[4:], expected, rtol=1e-4, atol=1e-4)

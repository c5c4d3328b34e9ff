"""Every block of a response at once: each is masked on its own, and reads what is before it clean.

A text with a random share of it masked says little in one pass: most of what is masked can only be
guessed, as what it depends on is masked too. Here the row has two streams, as block diffusion has
(arXiv 2503.09573): the clean text, of which a block sees nothing behind it, and the response once
more with masks, where a block sees itself and the clean text before it. With blocks of one token,
every token is learned from all that stands before it, and still at its own place.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.models import MaskedDiffusionModel
from xpredflow.models.attention import Pass, at, rotary
from xpredflow.training.common.masking import MaskedBatch, TextBatch, all_clean, weighted_loss

SIZES = (1, 1, 4, 16)  # of blocks, one drawn for each batch


def mask_blocks(
    batch: TextBatch, generator: torch.Generator
) -> tuple[MaskedBatch, Int[Tensor, "B L"]]:
    """Masks drawn for each block by itself, and the number of each position's block.

    Blocks are counted from a random place, so that none of their ends is special. The prompt's
    number is -1.
    """
    size = SIZES[int(torch.randint(len(SIZES), (), generator=generator))]
    offset = int(torch.randint(size, (), generator=generator))
    order = batch.response.cumsum(-1) - 1 + offset
    blocks = torch.where(batch.response, order // size, -1)
    sigma = torch.rand(len(blocks), int(blocks.max()) + 1, generator=generator)
    drawn = torch.rand(blocks.shape, generator=generator) < sigma.gather(1, blocks.clamp(min=0))
    masked = batch.response & (drawn if size > 1 else True)
    return replace(all_clean(batch, None), masked=masked, asked=masked), blocks


def block_cross_entropy(
    model: MaskedDiffusionModel, noisy: MaskedBatch, blocks: Int[Tensor, "B L"]
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Eq. 1 of every block per candidate position, and the share of masked tokens guessed right."""
    return weighted_loss(block_logits(model, noisy, blocks), noisy)


def block_logits(
    model: MaskedDiffusionModel, noisy: MaskedBatch, blocks: Int[Tensor, "B L"]
) -> Float[Tensor, "B N V"]:
    """What every block is predicted to be, from itself with masks and the clean text before it."""
    first, length = noisy.first, noisy.ids.shape[1]
    ids = torch.cat((noisy.ids, noisy.shown(model.special.mask)[:, first:]), 1)
    positions = torch.cat((noisy.positions, noisy.positions[:, first:]), 1)
    cos, sin = rotary(positions, model.shape.rotary_dim, model.shape.rope_theta)
    mask = see_blocks(blocks[:, :length], first)
    # attention folds the heads of a group into the queries
    mask = mask.repeat(1, model.shape.heads // model.shape.kv_heads, 1).unsqueeze(1)
    layers, norm, head = model.trunk()
    hidden, shared = F.embedding(ids, model.embedding), Pass(cos, sin, mask, None)
    for index, layer in enumerate(layers):
        hidden = layer(hidden, shared, index)
    read = torch.arange(length, ids.shape[1], device=ids.device).expand(len(ids), -1)
    return head(norm(at(hidden, read)))


def see_blocks(blocks: Int[Tensor, "B L"], first: int) -> Bool[Tensor, "B M M"]:
    """Which input sees which: the clean text, then its columns from `first` on with masks.

    Clean text sees its own block and what is before it; masked text its own block as it is masked,
    and what is before it clean.
    """
    clean, masked = blocks.unsqueeze(1), blocks[:, first:].unsqueeze(1)
    from_clean = torch.cat((clean <= clean.mT, torch.zeros_like(clean.mT == masked)), -1)
    from_masked = torch.cat((clean < masked.mT, masked == masked.mT), -1)
    return torch.cat((from_clean, from_masked), 1)

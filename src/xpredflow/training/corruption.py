"""What the model sees in pretraining: a text with some of its response masked (Eq. 1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.training.batches import TextBatch

FLOOR = 0.1  # the weight 1/σ is mostly noise for σ near 0, so it is bounded by 1/FLOOR


@dataclass(frozen=True)
class Corruption:
    """The clean text, which positions are masked, and what each row's loss is weighted with.

    `positions` are -1 where the row is not read at all; `candidates` could have been masked.
    """

    ids: Int[Tensor, "B L"]
    positions: Int[Tensor, "B L"]
    candidates: Bool[Tensor, "B L"]
    masked: Bool[Tensor, "B L"]
    weight: Float[Tensor, " B"]


def corrupt(
    batch: TextBatch, block_size: int | None, eos: int, generator: torch.Generator
) -> Corruption:
    """Mask candidates with probability σ: the response, or one block of it if it is block-causal.

    σ is stratified over the batch. A row in which nothing was drawn gets one masked position, or
    it would teach nothing.
    """
    rows, length = batch.ids.shape
    positions = torch.arange(length).expand(rows, length)
    if block_size is None:
        ids, candidates = batch.ids, batch.response
    else:
        ids, positions, candidates = _one_block(batch, block_size, eos, generator)
    sigma = (torch.arange(rows) + torch.rand(rows, generator=generator)) / rows
    sigma = sigma[torch.randperm(rows, generator=generator)]
    draws = torch.rand(candidates.shape, generator=generator).masked_fill(~candidates, 2.0)
    masked = draws < sigma.unsqueeze(-1)
    lowest = torch.zeros_like(masked).scatter(-1, draws.argmin(-1, keepdim=True), True)
    masked |= lowest & ~masked.any(-1, keepdim=True)
    return Corruption(ids, positions, candidates, masked, 1 / sigma.clamp(min=FLOOR))


def _one_block(
    batch: TextBatch, size: int, eos: int, generator: torch.Generator
) -> tuple[Int[Tensor, "B M"], Int[Tensor, "B M"], Bool[Tensor, "B M"]]:
    """A block per row, drawn among those up to its first EOS: earlier ones clean, later ones gone.

    That is how decoding meets a block: what stands before it is final, and after EOS it stops.
    """
    first = batch.response.int().argmax(-1)
    last = (batch.response & (batch.ids == eos)).int().argmax(-1)
    low, high = first // size, last // size
    share = torch.rand(len(low), generator=generator)
    block = low + (share * (high - low + 1)).long()
    length = int(block.max() + 1) * size
    places = torch.arange(length)
    padded = torch.full((len(low), length), eos)
    kept = min(length, batch.ids.shape[1])
    padded[:, :kept] = batch.ids[:, :kept]
    own = places // size
    positions = torch.where(own <= block.unsqueeze(-1), places, -1)
    candidates = (own == block.unsqueeze(-1)) & (places >= first.unsqueeze(-1))
    return padded, positions, candidates

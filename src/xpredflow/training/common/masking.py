"""What the model sees in training, a text with some of its response masked, and Eq. 1 on it."""

from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.models import MaskedDiffusionModel

FLOOR = 0.1  # the weight 1/σ is mostly noise for σ near 0, so it is bounded by 1/FLOOR
REACH = 16  # positions after a cut that can be told from what stands before it


@dataclass(frozen=True)
class TextBatch:
    """Token ids and which of them belong to the response, EOS included."""

    ids: Int[Tensor, "B L"]
    response: Bool[Tensor, "B L"]


@dataclass(frozen=True)
class MaskedBatch:
    """The clean text, which positions are masked, and what each row's loss is weighted with.

    `positions` are -1 where the row is not read at all; `candidates` could have been masked;
    `asked` are the masked ones that the loss counts.
    """

    ids: Int[Tensor, "B L"]
    positions: Int[Tensor, "B L"]
    candidates: Bool[Tensor, "B L"]
    masked: Bool[Tensor, "B L"]
    asked: Bool[Tensor, "B L"]
    weight: Float[Tensor, " B"]

    def shown(self, mask: int) -> Int[Tensor, "B L"]:
        """The ids with the mask token where they are masked."""
        return self.ids.masked_fill(self.masked, mask)

    @property
    def first(self) -> int:
        """The first column with a candidate: the head is not run on the common prompt."""
        return int(self.candidates.any(0).nonzero()[0])

    @property
    def columns(self) -> Int[Tensor, "B N"]:
        """The columns from the first one with a candidate on."""
        read = range(self.first, self.ids.shape[1])
        return self.positions.new_tensor(read).expand(len(self.ids), -1)

    def rows(self, chosen: slice | Int[Tensor, " R"]) -> "MaskedBatch":
        """Some of the rows, without the columns that none of them reads."""
        end = int((self.positions[chosen] >= 0).any(0).nonzero()[-1]) + 1
        tables = {
            name: getattr(self, name)[chosen, :end]
            for name in ("ids", "positions", "candidates", "masked", "asked")
        }
        return MaskedBatch(**tables, weight=self.weight[chosen])

    def to(self, device: torch.device) -> "MaskedBatch":
        """The same on a device."""
        return MaskedBatch(*(getattr(self, f.name).to(device) for f in fields(self)))


def draw_masks(
    batch: TextBatch,
    block_size: int | None,
    eos: int,
    generator: torch.Generator,
    span: tuple[float, float] = (0.0, 1.0),
    cut_share: float = 0.0,
    tail_share: float = 0.0,
) -> MaskedBatch:
    """Mask candidates with probability σ: the response, or one block of it if it is block-causal.

    σ ~ U(span) is stratified over the batch. A row in which nothing was drawn gets one masked
    position, or it would teach nothing. `cut_share` of the rows are cut off instead, and of
    `tail_share` only the tail is shown.
    """
    rows = len(batch.ids)
    if block_size is None:
        ids, candidates = batch.ids, batch.response
        positions = _positions(batch.response)
    else:
        ids, positions, candidates = _one_block(batch, block_size, eos, generator)
    sigma = (torch.arange(rows) + torch.rand(rows, generator=generator)) / rows
    low, high = span
    sigma = low + (high - low) * sigma[torch.randperm(rows, generator=generator)]
    draws = torch.rand(candidates.shape, generator=generator).masked_fill(~candidates, 2.0)
    masked = draws < sigma.unsqueeze(-1)
    lowest = torch.zeros_like(masked).scatter(-1, draws.argmin(-1, keepdim=True), True)
    masked |= lowest & ~masked.any(-1, keepdim=True)
    asked = masked
    for share, hide in ((cut_share, _cut), (tail_share, _but_tail)):
        if share:
            chosen = torch.rand(rows, generator=generator) < share
            hidden, near = hide(ids, candidates, eos, generator)
            masked = torch.where(chosen.unsqueeze(-1), hidden, masked)
            asked = torch.where(chosen.unsqueeze(-1), near, asked)
            sigma = torch.where(chosen, near.sum(-1) / candidates.sum(-1), sigma)
    weight = 1 / sigma.clamp(min=FLOOR)
    return MaskedBatch(ids, positions, candidates, masked, asked, weight)


def _cut(
    ids: Int[Tensor, "B L"], candidates: Bool[Tensor, "B L"], eos: int, generator: torch.Generator
) -> tuple[Bool[Tensor, "B L"], Bool[Tensor, "B L"]]:
    """All candidates from a random place in the text on, its first EOS included, and the nearest.

    Independent masks rarely hide a result together with all its later copies, so that a model
    learns to copy it and never to compute it. Here nothing later is left to copy from.
    """
    number = candidates.cumsum(-1)  # of a candidate within its row, from 1
    text = candidates & ((ids == eos) & candidates).cumsum(-1).le(1)
    share = torch.rand(len(ids), 1, generator=generator)
    first = 1 + (share * text.sum(-1, keepdim=True)).long()
    hidden = candidates & (number >= first)
    return hidden, hidden & (number < first + REACH)


def _but_tail(
    ids: Int[Tensor, "B L"], candidates: Bool[Tensor, "B L"], eos: int, generator: torch.Generator
) -> tuple[Bool[Tensor, "B L"], Bool[Tensor, "B L"]]:
    """All candidates up to a random place, EOS or not, and those nearest to it.

    Decoders that may settle any position settle EOS from the far end on: the model has to know
    where the text that it has not written yet must end, or there will be no room for it.
    """
    number = candidates.cumsum(-1)
    share = torch.rand(len(ids), 1, generator=generator)
    last = 1 + (share * candidates.sum(-1, keepdim=True)).long()
    hidden = candidates & (number <= last)
    return hidden, hidden & (number > last - REACH)


def all_clean(batch: TextBatch, block_size: int | None) -> MaskedBatch:
    """The whole text with nothing masked; a block-causal model reads its last block to the end."""
    positions = _positions(batch.response, block_size or 1)
    nothing = torch.zeros_like(batch.response)
    weight = torch.ones(len(batch.ids))
    return MaskedBatch(batch.ids, positions, batch.response, nothing, nothing, weight)


def _positions(response: Bool[Tensor, "B L"], size: int = 1) -> Int[Tensor, "B L"]:
    """What is read: everything up to the end of the response, in whole blocks of `size`."""
    columns = torch.arange(response.shape[1])
    blocks = _last(response) // size + 1
    return torch.where(columns < (blocks * size).unsqueeze(-1), columns, -1)


def _last(flags: Bool[Tensor, "B L"]) -> Int[Tensor, " B"]:
    return flags.shape[1] - 1 - flags.flip(-1).int().argmax(-1)


def _one_block(
    batch: TextBatch, size: int, eos: int, generator: torch.Generator
) -> tuple[Int[Tensor, "B M"], Int[Tensor, "B M"], Bool[Tensor, "B M"]]:
    """A block per row, drawn among those up to its first EOS: earlier ones clean, later ones gone.

    That is how decoding meets a block: what stands before it is final, and after EOS it stops. A
    response that was cut off has no EOS: its last block may be drawn too.
    """
    first = batch.response.int().argmax(-1)
    ends = batch.response & (batch.ids == eos)
    last = torch.where(ends.any(-1), ends.int().argmax(-1), _last(batch.response))
    low, high = first // size, last // size
    share = torch.rand(len(low), generator=generator)
    block = low + (share * (high - low + 1)).long()
    length = int(block.max() + 1) * size
    places = torch.arange(length)
    padded = torch.full((len(low), length), eos)
    kept = min(length, batch.ids.shape[1])
    padded[:, :kept] = batch.ids[:, :kept]
    response = torch.ones_like(padded, dtype=torch.bool)
    response[:, :kept] = batch.response[:, :kept]
    own = places // size
    positions = torch.where(own <= block.unsqueeze(-1), places, -1)
    candidates = (own == block.unsqueeze(-1)) & response
    return padded, positions, candidates


def masked_inputs(model: MaskedDiffusionModel, noisy: MaskedBatch) -> Float[Tensor, "B L E"]:
    """What the model reads: the text's embeddings, the mask's where it is masked."""
    return F.embedding(noisy.shown(model.special.mask), model.embedding)


def masked_cross_entropy(
    model: MaskedDiffusionModel, noisy: MaskedBatch, inputs: Float[Tensor, "B L E"] | None = None
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Eq. 1 per candidate position, and the share of masked tokens that were guessed right."""
    inputs = masked_inputs(model, noisy) if inputs is None else inputs
    return weighted_loss(model.logits(inputs, noisy.positions, noisy.columns), noisy)


def weighted_loss(
    logits: Float[Tensor, "B N V"], noisy: MaskedBatch
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The same from logits at the batch's columns."""
    asked, target = noisy.asked[:, noisy.first :], noisy.ids[:, noisy.first :]
    logits, target = logits[asked].float(), target[asked]
    loss = F.cross_entropy(logits, target, reduction="none")
    weight = noisy.weight.unsqueeze(-1).expand_as(asked)[asked]
    right = (logits.detach().argmax(-1) == target).float().mean()
    return (loss * weight).sum() / noisy.candidates.sum(), right

"""A small model with real context dependence and no weights to load: what most tests decode with.

Each position sees its own input, the mean of all inputs weighted by where they stand, and its
position; logits are spread widely enough that confidences cover (0, 1).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from xpredflow.types import Cache, SpecialTokens, shadow

VOCABULARY, WIDTH = 23, 16
MASK, EOS, EOT = 22, 21, 20


class ToyModel:
    """Bidirectional, deterministic in its seed; `sharpness` scales the logits."""

    name = "toy"
    special = SpecialTokens(mask=MASK, eos=EOS, eot=EOT)
    max_length = 96
    block_size: int | None = None
    tokenizer = None

    def __init__(self, seed: int = 0, sharpness: float = 6.0) -> None:
        draw = torch.Generator().manual_seed(seed)

        def randn(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=draw)

        self.embedding = randn(VOCABULARY, WIDTH)
        self.own, self.mean = randn(WIDTH, WIDTH) / 4, randn(WIDTH, WIDTH)
        self.places = randn(self.max_length, WIDTH)
        self.head = randn(WIDTH, VOCABULARY) / 4 * sharpness
        self.passes = 0
        self.positions_read = 0
        self.inputs_read = 0

    def logits(
        self,
        inputs: Float[Tensor, "B L E"],
        positions: Int[Tensor, "B L"],
        columns: Int[Tensor, "B N"],
        cache: Cache | None = None,
        slots: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B N V"]:
        self.passes += 1
        self.positions_read += columns.numel()
        self.inputs_read += int((positions >= 0).sum())
        real = (positions >= 0).unsqueeze(-1)
        at = torch.where(positions < -1, shadow(positions), positions)
        place = self.places[at.clamp(min=0)]
        seen = inputs * place.tanh() * real
        context = (seen.sum(1) / real.sum(1) @ self.mean).unsqueeze(1)
        if (positions < -1).any():
            context = torch.where(
                (positions < -1).unsqueeze(-1), self.beside(seen, positions, at), context
            )
        hidden = torch.tanh(inputs @ self.own + context + place / 2)
        index = columns.unsqueeze(-1).expand(-1, -1, WIDTH)
        return hidden.gather(1, index) @ self.head

    def beside(self, seen: Tensor, positions: Tensor, at: Tensor) -> Tensor:
        """What a shadow sees: the mean of all inputs but the one where it stands."""
        own = (at.unsqueeze(2) == positions.unsqueeze(1)).float() @ seen
        others = (positions >= 0).sum(1).reshape(-1, 1, 1) - 1
        return (seen.sum(1, keepdim=True) - own) / others.clamp(min=1) @ self.mean

    def new_cache(self, slots: int, length: int) -> None:
        return None


class CachedToy(ToyModel):
    """The same with an approximate cache: a row's context is the mean over what its slot holds."""

    def new_frozen_cache(self, slots: int, length: int) -> "ToyCache":
        return ToyCache(slots, length)

    def logits(self, inputs, positions, columns, cache=None, slots=None):
        if cache is None:
            return super().logits(inputs, positions, columns)
        assert isinstance(cache, ToyCache)
        assert slots is not None
        rows = []
        for i, slot in enumerate(slots.tolist()):
            here, own = positions[i], cache.rows[slot]
            real, beside = here >= 0, here < -1
            own[here[real]] = inputs[i, real]
            # the row as its slot holds it, and behind it what is read beside the row
            whole = torch.cat((own, inputs[i, beside])).unsqueeze(0)
            places = torch.cat((torch.arange(len(own)), here[beside])).unsqueeze(0)
            found = torch.zeros_like(here)
            found[real], found[beside] = here[real], torch.arange(len(own), whole.shape[1])
            rows.append(super().logits(whole, places, found[columns[i]].unsqueeze(0)))
            self.inputs_read -= len(own) - int(real.sum())
        self.passes -= len(rows) - 1  # it was one call
        return torch.cat(rows)


class ToyCache:
    """The inputs of every row as its slot holds them."""

    lead = 0

    def __init__(self, slots: int, length: int) -> None:
        self.rows = [torch.empty(0, WIDTH)] * slots

    def occupy(self, slot: int, length: int) -> None:
        self.rows[slot] = torch.full((length, WIDTH), torch.nan)  # it must be read whole first

    def grow(self, slots: int, length: int) -> None:
        self.rows += [torch.empty(0, WIDTH)] * (slots - len(self.rows))


def prompts(count: int, seed: int = 0) -> list[list[int]]:
    """Prompts of different lengths, as token ids."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 12, (count,), generator=draw).tolist()
    return [torch.randint(0, EOT, (n,), generator=draw).tolist() for n in lengths]

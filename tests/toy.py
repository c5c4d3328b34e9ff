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


def prompts(count: int, seed: int = 0) -> list[list[int]]:
    """Prompts of different lengths, as token ids."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 12, (count,), generator=draw).tolist()
    return [torch.randint(0, EOT, (n,), generator=draw).tolist() for n in lengths]

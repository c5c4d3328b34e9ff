"""Logits that predict the next position (Dream, CoDA, Fast-dLLM v2), read as if they did not.

The logits of position p are those of the hidden state at p − 1; position 0 keeps its own, for
nothing stands before it. A block-causal model needs the last state of the block before, which a
cached pass no longer computes: it is kept beside the keys and values.
"""

from typing import TYPE_CHECKING, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.types import Cache

if TYPE_CHECKING:
    from xpredflow.models.cache import BlockCache


class BlockEnds:
    """The last hidden state of every block of every row; later blocks never change it."""

    def __init__(self, slots: int, length: int, block_size: int, table: Tensor) -> None:
        blocks = -(-length // block_size)
        # one spare place takes what belongs to no end of a block
        self.states = table.new_zeros(slots, blocks + 1, table.shape[1]).detach()
        self.block_size, self.spare = block_size, blocks

    def store(
        self,
        hidden: Float[Tensor, "B L E"],
        positions: Int[Tensor, "B L"],
        slots: Int[Tensor, " B"],
    ) -> None:
        """Keep the states at ends of blocks."""
        is_end = (positions >= 0) & ((positions + 1) % self.block_size == 0)
        places = torch.where(is_end, positions // self.block_size, self.spare)
        self.states[slots.unsqueeze(1), places] = hidden

    def before(
        self, positions: Int[Tensor, "B N"], slots: Int[Tensor, " B"]
    ) -> Float[Tensor, "B N E"]:
        """The state before each of these positions, which are first ones of their blocks."""
        places = (positions - 1).clamp(min=0) // self.block_size
        return self.states[slots.unsqueeze(1), places]


def read_before(
    hidden: Float[Tensor, "B L E"],
    positions: Int[Tensor, "B L"],
    columns: Int[Tensor, "B N"],
    cache: Cache | None,
    slots: Int[Tensor, " B"] | None,
) -> Float[Tensor, "B N E"]:
    """The hidden states one position before those in the columns."""
    at, left = positions.gather(1, columns), (columns - 1).clamp(min=0)
    is_first = at <= 0  # nothing before it; or padding, of which nothing is used
    is_absent = ~is_first & (positions.gather(1, left) != at - 1)
    source = torch.where(is_first, columns, left).unsqueeze(-1)
    found = hidden.gather(1, source.expand(-1, -1, hidden.shape[-1]))
    ends = None if cache is None else cast("BlockCache", cache).block_ends
    if ends is None:
        if bool(is_absent.any()):
            raise ValueError("shifted logits need every position from 0 on, in order")
        return found
    if slots is None:
        slots = torch.arange(len(hidden), device=hidden.device)
    ends.store(hidden, positions, slots)
    return torch.where(is_absent.unsqueeze(-1), ends.before(at, slots), found)


def shifted_shadows(name: str) -> InputError:
    """Why a decoder that reads shadows cannot be used."""
    return InputError(
        f"the decoder reads shadows (a second look at each position that does not see its own"
        f" token, as WINO does), but {name!r} predicts a position from the one before it, which"
        " sees that token: choose another decoder, such as threshold"
    )

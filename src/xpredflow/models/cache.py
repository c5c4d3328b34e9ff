"""Keys and values of a block-causal model by absolute position; exact, because no query sees later.

Each pass gives the tokens that are not yet final in the cache and the whole current block; what it
computes is stored on the way, so that no pass is spent on storing alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from xpredflow.models.positions import Rows
from xpredflow.models.shift import BlockEnds


class BlockCache:
    """One slot per row; `lengths` says how far each slot has been written for its present row."""

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        layers: Sequence[torch.device],
        dtype: torch.dtype,
    ) -> None:
        """`layers` says where each of them is."""
        slots, length, kv_heads, head_dim = shape
        # One spare position at the end takes what padding writes. Zeros and not empty memory:
        # masked keys still enter the product, and NaN times zero is NaN.
        room = (slots, length + 1, kv_heads, head_dim)
        self.keys = [torch.zeros(room, dtype=dtype, device=device) for device in layers]
        self.values = [torch.zeros(room, dtype=dtype, device=device) for device in layers]
        self.length = length
        self.lengths = [0] * slots
        # A row's first position: 0, or up to `latest_start` where rows begin inside a block.
        self.starts, self.latest_start = [0] * slots, 0
        self.block_ends: BlockEnds | None = None  # of a model whose logits are shifted

    def release(self, *slots: int) -> None:
        """Forget rows before new ones take their slots: those must then start at position 0."""
        for slot in slots:
            self._shorten(slot, 0)

    def _shorten(self, slot: int, length: int) -> None:
        """Erase what a slot holds beyond `length`.

        Masking hides finite leftovers, but a NaN of a failed row survives a weight of zero.
        """
        for room in (*self.keys, *self.values):
            room[slot, length : self.lengths[slot]] = 0
        self.lengths[slot] = length

    def claim(self, rows: Rows) -> None:
        """Check one pass against what the slots hold, and note what it will have written."""
        self._check(rows.slots, rows.starts, rows.ends, rows.counts)
        for slot, end in zip(rows.slots, rows.ends, strict=True):
            if 0 < end < self.lengths[slot]:  # a new row in a slot that was not released
                self._shorten(slot, end)
            self.lengths[slot] = end or self.lengths[slot]
        for slot, first in zip(rows.slots, self._firsts(rows), strict=True):
            self.starts[slot] = first

    def _firsts(self, rows: Rows) -> list[int]:
        """Each row's first position, which a pass says that begins there."""
        told = zip(rows.slots, rows.starts, rows.counts, strict=True)
        return [
            start if count and start <= self.latest_start else self.starts[slot]
            for slot, start, count in told
        ]

    def open(
        self, positions: Int[Tensor, "B L"], rows: Rows, slots: Int[Tensor, " B"] | None = None
    ) -> "CacheView":
        """Where passes of these positions read and write; `claim` comes before each of them."""
        if slots is None:
            slots = torch.arange(positions.shape[0], device=positions.device)
        ends = self.key_ends(rows)
        longest = max(1, *ends)
        places = torch.arange(longest, device=positions.device).expand(len(rows.slots), -1)
        # Beyond its own end a row has no keys, though a longer neighbour does.
        keys = torch.where(places < torch.tensor(ends).to(places.device).unsqueeze(1), places, -1)
        if self.latest_start:
            first = torch.tensor(self._firsts(rows)).to(keys.device)
            keys = torch.where(places < first.unsqueeze(1), -1, keys)
        if rows.has_shadows:  # their keys are of this pass alone: they stand behind what is stored
            keys = torch.cat((keys, positions.clamp(max=-1)), dim=1)
        return CacheView(
            cache=self,
            rows=slots.unsqueeze(1),
            columns=torch.where(positions >= 0, positions, self.length),
            run=_as_run(rows.slots),
            stored=longest,
            has_shadows=rows.has_shadows,
            key_positions=keys,
        )

    def key_ends(self, rows: Rows) -> list[int]:
        """Where each row's keys end: with its last input."""
        return rows.ends

    def _check_slots(self, slots: list[int]) -> None:
        if len(set(slots)) < len(slots) or not all(0 <= s < len(self.lengths) for s in slots):
            raise ValueError(
                f"cache slots {slots}: expected distinct numbers below {len(self.lengths)}"
            )

    def _check(
        self, slots: list[int], starts: list[int], ends: list[int], counts: list[int]
    ) -> None:
        self._check_slots(slots)
        for slot, start, end, count in zip(slots, starts, ends, counts, strict=True):
            if count == 0:
                continue
            if end > self.length:
                raise ValueError(f"slot {slot}: position {end - 1} in a cache of {self.length}")
            if count != end - start:
                raise ValueError(f"slot {slot}: {count} inputs for positions {start} to {end - 1}")
            if start > max(self.lengths[slot], self.latest_start):
                raise ValueError(
                    f"slot {slot}: inputs start at position {start}, but only the first "
                    f"{self.lengths[slot]} are cached: pass the tokens between as well"
                )


@dataclass(frozen=True)
class CacheView:
    """The part of a cache that one pass reads and writes; a key position of -1 is not visible.

    The first `stored` keys are the cache's; with shadows, those of the pass itself follow.
    """

    cache: BlockCache
    rows: Int[Tensor, "B 1"]
    columns: Int[Tensor, "B L"]
    run: slice | None
    stored: int
    has_shadows: bool
    key_positions: Int[Tensor, "B K"]

    def to(self, device: torch.device) -> "CacheView":
        """The same for layers on another device."""
        return replace(self, rows=self.rows.to(device), columns=self.columns.to(device))

    def update(
        self, layer: int, k: Float[Tensor, "B L G D"], v: Float[Tensor, "B L G D"]
    ) -> tuple[Float[Tensor, "B K G D"], Float[Tensor, "B K G D"]]:
        """Store k and v at their positions, and return all that the rows hold."""
        if torch.is_grad_enabled() and (k.requires_grad or v.requires_grad):
            raise ValueError("a cache keeps no gradients: train without one, or use no_grad")
        return self._store(self.cache.keys[layer], k), self._store(self.cache.values[layer], v)

    def _store(self, room: Tensor, new: Float[Tensor, "B L G D"]) -> Float[Tensor, "B K G D"]:
        room[self.rows, self.columns] = new
        end = self.stored
        # Slots that lie side by side are read in place; others are gathered into a copy.
        held = room[self.run, :end] if self.run else room[self.rows.squeeze(1), :end]
        return torch.cat((held, new), dim=1) if self.has_shadows else held


def _as_run(slots: list[int]) -> slice | None:
    """The slots as a slice if they are consecutive and in order."""
    first = slots[0]
    return (
        slice(first, first + len(slots)) if slots == [*range(first, first + len(slots))] else None
    )

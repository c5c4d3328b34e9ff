"""Keys and values of a fully bidirectional model, kept for a block: approximate by design.

Fast-dLLM's caches (arXiv 2505.22618). The first pass of a block reads the whole row and stores the
keys and values of all positions. Until the block ends, later passes give only some positions, which
are stored anew, and attend to what the others held then: `prefix` gives the block and all behind
it, `dual` the block alone. Without a cache those others would change with every pass.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from xpredflow.models.cache import BlockCache
from xpredflow.models.positions import Rows


class FrozenCache(BlockCache):
    """One slot per row; `lengths` are the rows' own, known before their first pass.

    `lead` positions before the wanted ones must be given too: shifted logits are read there.
    """

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        layers: Sequence[torch.device],
        dtype: torch.dtype,
        lead: int = 0,
    ) -> None:
        super().__init__(shape, layers, dtype)
        self.lead = lead
        self.is_filled = [False] * len(self.lengths)

    def occupy(self, slot: int, length: int) -> None:
        """A new row of so many positions takes this slot; nothing of the one before is left."""
        for room in (*self.keys, *self.values):
            room[slot] = 0
        self.lengths[slot], self.is_filled[slot] = length, False

    def grow(self, slots: int, length: int) -> None:
        """Room for more or longer rows; what is held stays, for it cannot be computed again."""
        for rooms in (self.keys, self.values):
            for layer, room in enumerate(rooms):  # one by one: only one is there twice
                rooms[layer] = _enlarged(room, slots, length + 1)
        more = slots - len(self.lengths)
        self.lengths += [0] * more
        self.is_filled += [False] * more
        self.starts += [0] * more
        self.length = length

    def claim(self, rows: Rows) -> None:
        """Check one pass: a row's first must be of all its positions."""
        self._check_slots(rows.slots)
        for slot, start, end, count in zip(
            rows.slots, rows.starts, rows.ends, rows.counts, strict=True
        ):
            if count != end - start or end > self.lengths[slot]:
                raise ValueError(
                    f"slot {slot}: {count} inputs for positions {start} to {end - 1} of a row of"
                    f" {self.lengths[slot]}"
                )
            self.is_filled[slot] |= count == self.lengths[slot]
            if not self.is_filled[slot]:
                raise ValueError(
                    f"slot {slot}: positions {start} to {end - 1} of a row of {self.lengths[slot]}"
                    " that was never read whole: pass all of them first"
                )

    def key_ends(self, rows: Rows) -> list[int]:
        """Where each row's keys end: with the row, whatever this pass gives of it."""
        return [self.lengths[slot] for slot in rows.slots]


def _enlarged(room: Tensor, slots: int, length: int) -> Tensor:
    larger = room.new_zeros(slots, length, *room.shape[2:])
    larger[: len(room), : room.shape[1] - 1] = room[:, :-1]  # the spare place stays the last
    return larger

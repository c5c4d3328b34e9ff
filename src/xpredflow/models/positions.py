"""What the host must know of a pass's positions: read once, then remembered while they live.

A batch passes the same positions until a row joins or leaves. Asking the device about them in every
pass would make the host wait for it each time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from xpredflow.types import shadow


@dataclass(frozen=True)
class Rows:
    """Each row's first position, the one after its last, its inputs and its shadows."""

    starts: list[int]
    ends: list[int]
    counts: list[int]
    shadows: list[int]
    width: int
    slots: list[int]

    @classmethod
    def read(cls, positions: Int[Tensor, "B L"], slots: Int[Tensor, " B"] | None = None) -> "Rows":
        """One transfer to the host for everything; without `slots`, row i has slot i."""
        batch, width = positions.shape
        filled = positions >= 0
        far = torch.iinfo(positions.dtype).max
        starts = torch.where(filled, positions, far).amin(1)
        columns = [starts, positions.amax(1) + 1, filled.sum(1), (positions < -1).sum(1)]
        columns += [] if slots is None else [slots]
        facts = torch.stack(columns).tolist()
        own = facts[4] if slots is not None else list(range(batch))
        return cls(*facts[:4], width=width, slots=own)

    @property
    def has_shadows(self) -> bool:
        """Some row reads positions beside itself."""
        return any(self.shadows)

    def all_visible(self, block_size: int | None, key_ends: list[int] | None = None) -> bool:
        """Every query sees every key, so that attention needs no mask.

        Keys are the inputs themselves; with a cache, everything up to each row's end in it.
        """
        if self.has_shadows or any(count < self.width for count in self.counts):
            return False
        if key_ends is not None and len(set(key_ends)) > 1:
            return False
        rows = zip(self.starts, self.ends, strict=True)
        return block_size is None or all(
            start // block_size == (end - 1) // block_size for start, end in rows
        )


def place(positions: Int[Tensor, "B L"]) -> Int[Tensor, "B L"]:
    """Where inputs stand: a shadow stands where its position does; -1 is padding."""
    return torch.where(positions < -1, shadow(positions), positions)


class PositionMemo:
    """What was computed from a tensor of positions, until it is freed or changed in place."""

    def __init__(self) -> None:
        self._known: Any = WeakTensorKeyDictionary()

    def get(self, positions: Tensor, others: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """The value for these positions and these very other objects."""
        if any(isinstance(t, Tensor) and t.is_inference() for t in (positions, *others)):
            return compute()  # such tensors do not say whether they were changed
        key = _state(positions, *others)
        known = self._known.get(positions)
        if known is not None and _same(known[0], key):
            return known[1]
        value = compute()
        # never the positions themselves: a value that held its key would keep it for ever
        self._known[positions] = (key, value)
        return value


def _state(positions: Tensor, *others: Any) -> tuple[Any, ...]:
    versions = (t._version if isinstance(t, Tensor) else 0 for t in (positions, *others))
    return (*versions, *others)


def _same(known: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    return len(known) == len(now) and all(
        a is b or (isinstance(a, int) and isinstance(b, int) and a == b)
        for a, b in zip(known, now, strict=True)
    )

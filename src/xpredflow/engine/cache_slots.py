"""Room for keys and values: a slot for every row in flight whose model, or whose options, cache.

A block-causal model has an exact cache. A bidirectional one has an approximate one, for rows that
ask for it (`cache="prefix"` or `"dual"`); see `xpredflow.models.frozen_cache`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol, cast, runtime_checkable

from xpredflow.engine.rows import Row
from xpredflow.errors import InputError
from xpredflow.types import Cache, Model

CacheKind = Literal["prefix", "dual"]


@runtime_checkable
class FrozenRows(Cache, Protocol):
    """An approximate cache, which a bidirectional model may have: see `models.frozen_cache`.

    It is made by the model's `new_frozen_cache(slots, length)` and handed to `logits` as any other.
    """

    lead: int  # positions before the wanted ones that a pass must give too

    def occupy(self, slot: int, length: int) -> None:
        """A new row of this length takes the slot; its next pass gives all its positions."""
        ...

    def grow(self, slots: int, length: int) -> None:
        """Room for more or longer rows; what is held stays."""
        ...


@dataclass
class Slots:
    """The cache of the rows in flight, and room in it for the longest."""

    model: Model
    cache: Cache | None = None
    count: int = 0
    length: int = 0
    free: list[int] = field(default_factory=list)

    def reserve(
        self, running: list[Row], joining: list[Row], waiting: Iterable[Row], most: int
    ) -> bool:
        """A slot for every row that joins; True if the cache was made anew or moved.

        What an exact one held is read again with the next pass: rows begin at position 0 once more.
        """
        rows = [row for row in (*running, *joining) if self.holds(row)]
        joining = [row for row in joining if self.holds(row)]
        if not joining:
            return False
        longest = max(row.offset + len(row.ids) for row in rows)
        grows = len(rows) > self.count or longest > self.length
        if grows:
            before = self.count
            if len(rows) > self.count:
                self.count = max(len(rows), min(2 * self.count, most))
            expected = (row.offset + len(row.ids) for row in waiting if self.holds(row))
            self.length = max([longest, self.length, *expected])
            if self.model.block_size is None:
                self._grow_frozen(before)
            else:
                self.cache = None  # the old one goes before the new one comes
                self.cache = self.model.new_cache(self.count, self.length)
                self.free = list(reversed(range(self.count)))
                joining = rows
        for row in joining:
            row.slot, row.cached = self.free.pop(), 0
            if self.model.block_size is None:
                cast(FrozenRows, self.cache).occupy(row.slot, len(row.ids))
        return grows

    def _grow_frozen(self, before: int) -> None:
        """What an approximate cache holds came from a block's first pass: it is kept."""
        if self.cache is None:
            self.cache = self.model.new_frozen_cache(self.count, self.length)  # type: ignore[attr-defined]
        else:
            cast(FrozenRows, self.cache).grow(self.count, self.length)
        self.free = [*reversed(range(before, self.count)), *self.free]

    def holds(self, row: Row) -> bool:
        """Whether the row has keys and values here."""
        return self.model.block_size is not None or row.cache is not None

    def release(self, row: Row) -> None:
        """The row's slot may be used again."""
        if self.holds(row):
            self.free.append(row.slot)


def check_cache(cache: CacheKind | None, cfg_scale: float, model: Model | None) -> None:
    """Refuse an approximate cache where it has no use or no place."""
    if cache is None:
        return
    if cfg_scale:
        raise InputError(
            f"cache is {cache!r} and cfg_scale is {cfg_scale:g}: a guided step reads two versions"
            " of a row, of which neither is kept; leave one of the two out"
        )
    if model is None:
        return
    if model.block_size is not None:
        raise InputError(
            f"cache is {cache!r}, but {model.name!r} is block-causal and has an exact cache"
            " already: leave it out"
        )
    if not hasattr(model, "new_frozen_cache"):
        raise InputError(
            f"cache is {cache!r}, but keys and values of {model.name!r}, a module of its own, are"
            " not to be had: leave it out"
        )

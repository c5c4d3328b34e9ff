"""The rows in flight: groups of one decoder each, read by the model in the same pass."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.engine.group import Group, Logits, Part
from xpredflow.engine.rows import Row, Rule
from xpredflow.engine.window import Window, block_start, is_fresh, make_windows
from xpredflow.types import Cache, Model, Space


@dataclass
class Slots:
    """The cache of a block-causal model: a slot per row in flight, and room for the longest."""

    model: Model
    cache: Cache | None = None
    count: int = 0
    length: int = 0
    free: list[int] = field(default_factory=list)

    def reserve(
        self, running: list[Row], joining: list[Row], waiting: Iterable[Row], most: int
    ) -> bool:
        """A slot for every row that joins; True if the cache is a new one.

        Then what it held is read again with the next pass: rows begin at position 0 once more.
        """
        if self.model.block_size is None:
            return False
        rows = [*running, *joining]
        longest = max(row.offset + len(row.ids) for row in rows)
        grows = len(rows) > self.count or longest > self.length
        if grows:
            if len(rows) > self.count:
                self.count = max(len(rows), min(2 * self.count, most))
            self.length = max(
                [longest, self.length, *(row.offset + len(row.ids) for row in waiting)]
            )
            self.cache = None  # the old one goes before the new one comes
            self.cache = self.model.new_cache(self.count, self.length)
            self.free = list(reversed(range(self.count)))
        for row in rows if grows else joining:
            row.slot, row.cached = self.free.pop(), 0
        return grows

    def release(self, row: Row) -> None:
        """The row's slot may be used again."""
        if self.model.block_size is not None:
            self.free.append(row.slot)


class Batch:
    """Rows join, begin their next block and leave; tensors are rebuilt only when one of them did.

    What a pass computes is handed out before it is accepted: one that fails can be repeated.
    """

    def __init__(self, model: Model, slots: Slots) -> None:
        self.model, self.slots = model, slots
        self.space = Space(model.embedding.detach(), model.special)
        self.groups: list[Group] = []
        self._windows: list[Window] | None = None

    @property
    def rows(self) -> list[Row]:
        """Every row, group by group."""
        return [row for group in self.groups for row in group.rows]

    def change(self, leaving: list[Row], beginning: list[Row]) -> None:
        """Some rows leave; others begin a block, for which they may have left before."""
        gone = {id(row) for row in leaving} | {id(row) for row in beginning}
        groups = []
        for group in self.groups:
            kept = [i for i, row in enumerate(group.rows) if id(row) not in gone]
            joining = [row for row in beginning if _rule(row).is_that_of(group.rule)]
            beginning = [row for row in beginning if not _rule(row).is_that_of(group.rule)]
            if joining or (kept and len(kept) < len(group.rows)):
                groups.append(group.changed(kept, joining))
            elif kept:
                groups.append(group)
        while beginning:
            rule = _rule(beginning[0])
            groups.append(
                Group(rule, [r for r in beginning if _rule(r).is_that_of(rule)], self.space)
            )
            beginning = [row for row in beginning if not _rule(row).is_that_of(rule)]
        self.groups = groups
        self.rebuild()

    def rebuild(self) -> None:
        """The model's view of the rows is to be made anew."""
        self._windows = None

    def halves(self) -> tuple["Batch", "Batch"]:
        """The same rows as two batches, where one does not fit."""
        rows = self.rows
        cut = {id(row) for row in rows[: (len(rows) + 1) // 2]}
        halves = (Batch(self.model, self.slots), Batch(self.model, self.slots))
        for group in self.groups:
            for first, half in zip((True, False), halves, strict=True):
                places = [i for i, row in enumerate(group.rows) if (id(row) in cut) == first]
                if places:
                    half.groups.append(group.changed(places, []))
        return halves

    def advance(self) -> list[Part]:
        """One forward pass of every row, and what each group's decoder makes of it."""
        if self._windows is None:
            self._windows = make_windows(self.model, self.groups, self.space, self.slots.cache)
        windows = self._windows
        readings = [group.readings() for group in self.groups]
        with torch.no_grad():
            logits = [window.logits(self.model, readings, self.slots.cache) for window in windows]
        return [
            group.advance(
                readings[g],
                [_logits_of(g, group, windows, logits, at) for at in range(len(readings[g]))],
            )
            for g, group in enumerate(self.groups)
        ]

    def accept(self, parts: list[Part]) -> None:
        """The pass counts: the slots hold everything before the blocks that are being decoded."""
        for part in parts:
            part.group.accept(part)
        if self.slots.cache is None:
            return
        for row in self.rows:
            if is_fresh(self.model, row):
                row.cached = block_start(self.model, row)
                self.rebuild()


def _rule(row: Row) -> Rule:
    assert row.rule is not None, "a row is given its rule when it is queued"
    return row.rule


def _logits_of(
    g: int, group: Group, windows: list[Window], logits: list[Float[Tensor, "_ _ _ V"]], at: int
) -> Logits:
    """What reading `at` of a group says, and its shadows: views, unless some rows are fresh."""
    found: list[tuple[Tensor, Tensor | None]] = []
    order: list[int] = []
    for window, read in zip(windows, logits, strict=True):
        for share in window.shares:
            if share.group == g:
                mine = read[at, share.rows]
                # of a canvas that is narrower than the window's widest, the window's first columns
                behind = mine[:, window.width : window.width + group.width]
                shadow = _widened(behind, group.width) if group.rule.shadows else None
                own = mine[:, : min(window.width, group.width)]
                found.append((_widened(own, group.width), shadow))
                order += share.members
    if len(found) == 1:
        return found[0]
    index = torch.tensor(order).argsort().to(found[0][0].device)
    own, shadows = zip(*found, strict=True)
    beside = [part for part in shadows if part is not None]
    return torch.cat(own)[index], torch.cat(beside)[index] if beside else None


def _widened(logits: Float[Tensor, "G M V"], width: int) -> Float[Tensor, "G N V"]:
    """Padded to the canvas: some rows of a group may be wider than those of this window."""
    missing = width - logits.shape[1]
    return logits if missing <= 0 else torch.nn.functional.pad(logits, (0, 0, 0, missing))

"""The rows in flight: groups of one decoder each, read by the model in the same pass."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.engine.cache_slots import Slots
from xpredflow.engine.distribution import Head
from xpredflow.engine.group import Group, Logits, Part
from xpredflow.engine.pieces import head_for
from xpredflow.engine.rows import Row, Rule
from xpredflow.engine.window import Window, block_start, is_fresh, make_windows
from xpredflow.types import Model, Space


class Batch:
    """Rows join, begin their next block and leave; tensors are rebuilt only when one of them did.

    What a pass computes is handed out before it is accepted: one that fails can be repeated.
    """

    def __init__(self, model: Model, slots: Slots) -> None:
        self.model, self.slots = model, slots
        self.space = Space(model.embedding.detach(), model.special)
        self.groups: list[Group] = []
        self._windows: list[Window] | None = None
        self._head: Head | None = None  # where it is run in pieces

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

    @torch.no_grad()
    def advance(self) -> list[Part]:
        """One forward pass of every row, and what each group's decoder makes of it."""
        if self._windows is None:
            self._windows = make_windows(self.model, self.groups, self.space, self.slots.cache)
            positions = sum(window.columns.numel() for window in self._windows)
            self._head = head_for(self.model, self.rows, positions)
        windows, head, cache = self._windows, self._head, self.slots.cache
        readings = [group.readings() for group in self.groups]
        logits = [
            window.logits(self.model, readings, cache, head is not None) for window in windows
        ]
        return [
            group.advance(
                readings[g],
                [_logits_of(g, group, windows, logits, at) for at in range(len(readings[g]))],
                head,
            )
            for g, group in enumerate(self.groups)
        ]

    def accept(self, parts: list[Part]) -> None:
        """The pass counts: the slots hold everything before the blocks that are being decoded."""
        cache = self.slots.cache
        fresh = [row for row in self.rows if cache is not None and is_fresh(self.model, row)]
        for part in parts:
            part.group.accept(part)
        for row in fresh:
            row.cached, row.frozen_for = block_start(self.model, row), row.block
            self.rebuild()


def _rule(row: Row) -> Rule:
    assert row.rule is not None, "a row is given its rule when it is queued"
    return row.rule


def _logits_of(
    g: int,
    group: Group,
    windows: list[Window],
    logits: list[Sequence[Float[Tensor, "_ _ V"]]],
    at: int,
) -> Logits:
    """What reading `at` of a group says, and its shadows: views, unless some rows are fresh."""
    found: list[tuple[Tensor, Tensor | None]] = []
    order: list[int] = []
    for window, read in zip(windows, logits, strict=True):
        for share in window.shares:
            if share.group == g:
                mine = read[at] if len(window.shares) == 1 else read[at][share.rows]
                # of a canvas that is narrower than the window's widest, the window's first columns
                shadow = None
                if group.rule.shadows:
                    behind = mine[:, window.width : window.width + group.width]
                    shadow = _widened(behind, group.width)
                own = min(window.width, group.width)
                mine = mine if mine.shape[1] == own else mine[:, :own]
                found.append((_widened(mine, group.width), shadow))
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

"""What one call of the model reads: left-padded context of some rows, and where to look."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.cache_slots import FrozenRows
from xpredflow.engine.group import Group
from xpredflow.engine.guidance import guided_logits
from xpredflow.engine.rows import Row
from xpredflow.types import Cache, Canvas, Model, Space, shadow


@dataclass(frozen=True)
class Share:
    """The rows of one group in a window: `rows` of the window, `members` of the group.

    `here` are the places of the window, row after row, that hold the group's canvas at `there`;
    `span` are the columns that hold all of it, where they are the same in every row.
    """

    group: int
    rows: slice
    members: list[int]
    here: Int[Tensor, " K"]
    there: Int[Tensor, " K"]
    span: slice | None


@dataclass(frozen=True)
class Window:
    """Tensors that stay the same objects from pass to pass, until rows change.

    Of the context only what is being decoded changes, in place; nothing else does.
    With shadows M = 2N columns are read, the canvas and then its shadows; else M = N. A decoder
    with branches has G = (1 + branches) copies of its rows, the rows' own in front.
    """

    context: Float[Tensor, "G L E"]
    positions: Int[Tensor, "G L"]
    columns: Int[Tensor, "G M"]
    slots: Int[Tensor, " R"]
    given: Bool[Tensor, "G L"]
    kind: "Kind"
    width: int
    copies: int
    shares: list[Share]

    def logits(
        self,
        model: Model,
        readings: list[list[Canvas]],
        cache: Cache | None,
        is_hidden: bool = False,
    ) -> Sequence[Float[Tensor, "R M _"]]:
        """One call of the model, with each group's canvases as they are now; for every copy.

        In place of logits, hidden states where they are asked for.
        """
        inputs = self.context
        copies = inputs.chunk(self.copies) if self.copies > 1 else (inputs,)
        for share in self.shares:
            for copy, canvas in zip(copies, readings[share.group], strict=True):
                if share.span is not None:
                    copy[share.rows, share.span] = canvas.state
                    continue
                found = canvas.state.flatten(0, 1).index_select(0, share.there)
                copy.flatten(0, 1).index_copy_(0, share.here, found.to(inputs.dtype))
        at, columns = self.positions, self.columns
        read = model.hidden if is_hidden else model.logits  # type: ignore[attr-defined]  (with a head apart)
        if self.kind.cfg_scale:
            logits = guided_logits(model, inputs, self.given, at, columns, self.kind.cfg_scale)
        elif cache is None or not self.kind.is_cached:
            logits = read(inputs, at, columns)
        else:
            logits = read(inputs, at, columns, cache, self.slots)
        return logits.chunk(self.copies) if self.copies > 1 else (logits,)


class Kind(NamedTuple):
    """What rows must share to be read in one call of the model."""

    is_cached: bool
    is_fresh: bool  # what they attend to is not in the cache yet
    shadows: bool
    cfg_scale: float
    branches: int
    cache: str | None  # of a bidirectional model: where each row's inputs end


def make_windows(
    model: Model, groups: list[Group], space: Space, cache: Cache | None
) -> list[Window]:
    """As a rule one; rows whose context is not cached yet, shadows and guided rows have their own.

    Guided rows are read whole: what is cached has seen the prompt. So are those with branches, of
    which only one could be stored.
    """
    kinds: dict[Kind, list[tuple[int, int]]] = {}
    for g, group in enumerate(groups):
        scale, branches = group.rule.cfg_scale, group.rule.branches
        is_whole = cache is None or scale != 0 or branches > 0
        for i, row in enumerate(group.rows):
            cached = not is_whole and (model.block_size is not None or row.cache is not None)
            fresh = cached and is_fresh(model, row)
            ends = row.cache if cached and not fresh else None
            kind = Kind(cached, fresh, group.rule.shadows, scale, branches, ends)
            kinds.setdefault(kind, []).append((g, i))
    return [_window(model, groups, members, space, cache, kind) for kind, members in kinds.items()]


def block_start(model: Model, row: Row) -> int:
    """Where the block that is being decoded begins in a block-causal model."""
    size = model.block_size or 1
    return (row.offset + row.open[0]) // size * size - row.offset


def is_fresh(model: Model, row: Row) -> bool:
    """Whether something that the block attends to is not in the cache yet.

    An approximate cache is filled anew by the first pass of every block.
    """
    if model.block_size is None:
        return row.cache is not None and row.frozen_for != row.block
    return row.cached < block_start(model, row)


def _span(model: Model, row: Row, cache: Cache | None, kind: Kind) -> range:
    """Positions the model must read: all, or those whose keys and values are not to be had."""
    if not kind.is_cached:
        return range(len(row.ids))
    if model.block_size is not None:
        return range(row.cached, block_start(model, row) + model.block_size)
    if kind.is_fresh:
        return range(len(row.ids))
    start = max(0, row.open[0] - cast(FrozenRows, cache).lead)
    return range(start, row.open[-1] + 1 if kind.cache == "dual" else len(row.ids))


def _window(
    model: Model,
    groups: list[Group],
    members: list[tuple[int, int]],
    space: Space,
    cache: Cache | None,
    kind: Kind,
) -> Window:
    rows, shadows = [groups[g].rows[i] for g, i in members], kind.shadows
    copies = 1 + kind.branches
    spans = [_span(model, row, cache, kind) for row in rows]
    length, width = max(map(len, spans)), max(len(row.open) for row in rows)
    whole = length + (width if shadows else 0)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    positions, columns = torch.full((len(rows), length), -1), torch.zeros(len(rows), width).long()
    beside = torch.full((len(rows), width), -1)
    given = torch.zeros(len(rows), whole, dtype=torch.bool)
    for i, (row, span) in enumerate(zip(rows, spans, strict=True)):
        pad = length - len(span)
        ids[i, pad:] = row.ids[span.start : span.stop]
        positions[i, pad:] = torch.arange(span.start, span.stop) + row.offset
        if row.given is not None:
            given[i, pad:length] = row.given[span.start : span.stop]
        columns[i, : len(row.open)] = torch.tensor(row.open) + (pad - span.start)
        beside[i, : len(row.open)] = shadow(torch.tensor(row.open) + row.offset)
    shares = [
        _share(g, groups[g], members, whole, columns, space)
        for g in dict.fromkeys(g for g, _ in members)
    ]
    if shadows:
        # behind the row, under the mask
        ids = torch.cat((ids, torch.full((len(rows), width), space.special.mask)), dim=1)
        positions = torch.cat((positions, beside), dim=1)
        behind = torch.arange(length, length + width).expand(len(rows), -1)
        columns = torch.cat((columns, behind), dim=1)
    if copies > 1:
        ids, positions, columns, given = (
            tensor.repeat(copies, 1) for tensor in (ids, positions, columns, given)
        )
    device = space.table.device
    return Window(
        context=space.table[ids.to(device)],
        positions=positions.to(device),
        columns=columns.to(device),
        slots=torch.tensor([row.slot for row in rows]).to(device),
        given=given.to(device),
        kind=kind,
        width=width,
        copies=copies,
        shares=shares,
    )


def _share(
    g: int,
    group: Group,
    members: list[tuple[int, int]],
    length: int,
    columns: Int[Tensor, "G N"],
    space: Space,
) -> Share:
    """The group's rows in a window whose rows have this length."""
    mine = [(at, i) for at, (of, i) in enumerate(members) if of == g]
    places = [
        (at * length + int(column), i * group.width + slot)
        for at, i in mine
        for slot, column in enumerate(columns[at, : len(group.rows[i].open)].tolist())
    ]
    here, there = (
        torch.tensor(places, dtype=torch.long).reshape(-1, 2).to(space.table.device).unbind(-1)
    )
    first, width = int(columns[mine[0][0], 0]), group.width
    everywhere = [(at, i, slot) for i, (at, _) in enumerate(mine) for slot in range(width)]
    filled = [(at * length + first + slot, i * width + slot) for at, i, slot in everywhere]
    is_plain = len(mine) == len(group.rows) and places == filled
    return Share(
        group=g,
        rows=slice(mine[0][0], mine[-1][0] + 1),
        members=[i for _, i in mine],
        here=here.contiguous(),
        there=there.contiguous(),
        span=slice(first, first + width) if is_plain else None,
    )

"""The rows in flight as tensors: windows of context for the model, one canvas for the decoder."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.guidance import guided_logits
from xpredflow.engine.rows import Row
from xpredflow.types import Cache, Canvas, Model, Space, StepInfo, shadow


@dataclass(frozen=True)
class Window:
    """What the model reads for some rows of the batch: left-padded context and where to look.

    `open_at` are the (row, column) pairs that hold the canvas, `canvas_at` the same in the canvas.
    With shadows M = 2N columns are read, the canvas and then its shadows; else M = N.
    """

    members: Int[Tensor, " G"]
    context: Float[Tensor, "G L E"]
    positions: Int[Tensor, "G L"]
    columns: Int[Tensor, "G M"]
    open_at: tuple[Int[Tensor, " K"], Int[Tensor, " K"]]
    canvas_at: tuple[Int[Tensor, " K"], Int[Tensor, " K"]]
    slots: Int[Tensor, " G"]
    given: Bool[Tensor, "G L"]


class Batch:
    """Rows join, advance and leave; tensors are rebuilt only when one of them did."""

    def __init__(
        self, model: Model, slots: int, length: int, shadows: bool = False, cfg_scale: float = 0.0
    ) -> None:
        self.model = model
        self.shadows, self.cfg_scale = shadows, cfg_scale
        self.device = model.embedding.device
        self.space = Space(model.embedding.detach(), model.special)
        # guided rows are read whole: what is cached has seen the prompt
        self.cache: Cache | None = None if cfg_scale else model.new_cache(slots, length)
        self.free = list(reversed(range(slots)))
        self.rows: list[Row] = []
        self.canvas = Canvas.blank(self._frozen([]), self.space)
        self.windows: list[Window] = []

    def replace(self, kept: list[int], joining: list[Row]) -> None:
        """Keep the rows at these places and let others begin a block beside them."""
        for row in joining:
            if row.used == 0:
                row.slot = self.free.pop()
        rows = [self.rows[i] for i in kept] + joining
        frozen = self._frozen(rows)
        blank = Canvas.blank(frozen, self.space)
        self.canvas = _carry_over(self.canvas, kept, blank)
        self.rows = rows
        self.windows = self._windows()

    def release(self, row: Row) -> None:
        """The row's cache slot may be used again."""
        self.free.append(row.slot)

    def forward(self) -> Float[Tensor, "B M V"]:
        """One pass of every row; rows whose context is not cached yet go in a pass of their own.

        Logits at the canvas, followed by those of its shadows if there are any.
        """
        parts = [self._pass(window) for window in self.windows]
        # before the windows are rebuilt: the parts stand in the order of the old ones
        order = torch.cat([window.members for window in self.windows]).argsort()
        self._mark_cached()
        return parts[0] if len(parts) == 1 else torch.cat(parts)[order]

    def info(self, seed: int) -> StepInfo:
        """Where each row stands in its block."""
        return StepInfo(
            step=torch.tensor([row.step for row in self.rows], device=self.device),
            budget=torch.tensor([row.budget for row in self.rows], device=self.device),
            rows=tuple(row.number for row in self.rows),
            seed=seed,
            block=tuple(row.block for row in self.rows),
        )

    def positions(self) -> Int[Tensor, "B N"]:
        """Absolute positions of the canvas, -1 for padding."""
        return self._places(self.rows)

    def _places(self, rows: list[Row]) -> Int[Tensor, "G N"]:
        width = self.canvas.frozen.shape[1]
        return _padded([row.open for row in rows], width, self.device)

    def _shadows(self, rows: list[Row]) -> Int[Tensor, "G N"]:
        places = self._places(rows)
        offsets = torch.tensor([row.offset for row in rows], device=self.device).unsqueeze(1)
        return torch.where(places < 0, places, shadow(places + offsets))

    def _pass(self, window: Window) -> Float[Tensor, "G M V"]:
        inputs = window.context.clone()
        state = self.canvas.state[window.members]
        inputs[window.open_at] = state[window.canvas_at].to(inputs.dtype)
        if self.cfg_scale:
            at, columns = window.positions, window.columns
            return guided_logits(self.model, inputs, window.given, at, columns, self.cfg_scale)
        slots = None if self.cache is None else window.slots
        return self.model.logits(inputs, window.positions, window.columns, self.cache, slots)

    def _mark_cached(self) -> None:
        """After a pass the slots hold everything before the block that is being decoded."""
        if self.cache is None:
            return
        stale = [row for row in self.rows if row.cached < self._block_start(row)]
        for row in stale:
            row.cached = self._block_start(row)
        if stale:
            self.windows = self._windows()

    def _block_start(self, row: Row) -> int:
        size = self.model.block_size or 1
        return (row.offset + row.open[0]) // size * size - row.offset

    def _frozen(self, rows: list[Row]) -> Tensor:
        lengths = [len(row.open) for row in rows]
        columns = torch.arange(max(lengths, default=0), device=self.device)
        return columns >= torch.tensor(lengths, device=self.device).reshape(-1, 1)

    def _windows(self) -> list[Window]:
        fresh = [i for i, row in enumerate(self.rows) if self._is_fresh(row)]
        steady = [i for i, row in enumerate(self.rows) if not self._is_fresh(row)]
        return [self._window(group) for group in (fresh, steady) if group]

    def _is_fresh(self, row: Row) -> bool:
        return self.cache is not None and row.cached < self._block_start(row)

    def _span(self, row: Row) -> range:
        """Positions the model must read: all, or those after the cache up to the block's end."""
        if self.cache is None or self.model.block_size is None:
            return range(len(row.ids))
        return range(row.cached, self._block_start(row) + self.model.block_size)

    def _window(self, group: list[int]) -> Window:
        rows = [self.rows[i] for i in group]
        spans = [self._span(row) for row in rows]
        length, width = max(map(len, spans)), self.canvas.frozen.shape[1]
        ids = torch.zeros(len(rows), length, dtype=torch.long)
        positions = torch.full((len(rows), length), -1)
        given = torch.zeros(len(rows), length + (width if self.shadows else 0), dtype=torch.bool)
        at = []
        for i, (row, span) in enumerate(zip(rows, spans, strict=True)):
            pad = length - len(span)
            ids[i, pad:] = row.ids[span.start : span.stop]
            positions[i, pad:] = torch.arange(span.start, span.stop) + row.offset
            if row.given is not None:
                given[i, pad:length] = row.given[span.start : span.stop]
            at.append([pad + p - span.start for p in row.open])
        open_columns = _padded(at, width, self.device)
        at_row, at_slot = (open_columns >= 0).nonzero(as_tuple=True)
        context, places = self.space.table[ids.to(self.device)], positions.to(self.device)
        everywhere = open_columns.clamp(min=0)
        if self.shadows:
            masks = self.space.table[self.space.special.mask].expand(len(rows), width, -1)
            context = torch.cat((context, masks), dim=1)
            places = torch.cat((places, self._shadows(rows)), dim=1)
            behind = torch.arange(length, length + width, device=self.device)
            everywhere = torch.cat((everywhere, behind.expand(len(rows), -1)), dim=1)
        return Window(
            members=torch.tensor(group, device=self.device),
            context=context,
            positions=places,
            columns=everywhere,
            open_at=(at_row, open_columns[at_row, at_slot]),
            canvas_at=(at_row, at_slot),
            slots=torch.tensor([row.slot for row in rows], device=self.device),
            given=given.to(self.device),
        )


def _padded(columns: list[list[int]], width: int, device: torch.device) -> Int[Tensor, "B N"]:
    rows = [column + [-1] * (width - len(column)) for column in columns]
    return torch.tensor(rows, device=device, dtype=torch.long).reshape(len(columns), width)


def _carry_over(old: Canvas, kept: list[int], blank: Canvas) -> Canvas:
    """The kept rows of the old canvas on top of a blank one, cut or padded to its width."""
    if not kept:
        return blank
    index = torch.tensor(kept, device=blank.progress.device)
    width = min(old.progress.shape[1], blank.progress.shape[1])

    def merge(before: Tensor, after: Tensor) -> Tensor:
        after = after.clone()
        after[: len(kept), :width] = before[index, :width]
        return after

    return blank.update(
        state=merge(old.state, blank.state),
        progress=merge(old.progress, blank.progress),
        tokens=merge(old.tokens, blank.tokens),
        memory=_carry_memory(old.memory, index, blank, width),
    )


def _carry_memory(
    memory: dict[str, Tensor], index: Tensor, blank: Canvas, width: int
) -> dict[str, Tensor]:
    """Per-row or per-position tensors of a decoder; rows that join start at zero."""
    rows, positions = blank.progress.shape
    carried = {}
    for name, old in memory.items():
        per_position = old.ndim > 1
        shape = (rows, positions, *old.shape[2:]) if per_position else (rows,)
        new = old.new_zeros(shape)
        if per_position:
            new[: len(index), :width] = old[index, :width]
        else:
            new[: len(index)] = old[index]
        carried[name] = new
    return carried

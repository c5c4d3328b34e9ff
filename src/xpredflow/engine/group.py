"""The rows of one decoder: they share a canvas, and one call of its rule moves all of them."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.distribution import Head
from xpredflow.engine.rows import Row, Rule
from xpredflow.engine.signals import read_checked
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo

# Of a group's rows, and of their shadows where the decoder asks for them.
Logits = tuple[Float[Tensor, "G N V"], Float[Tensor, "G N V"] | None]


@dataclass(frozen=True)
class Part:
    """A group's share of a pass, before anything of it is accepted.

    `outcome` says of every row whether some of its logits are not finite, whether it has converged,
    gave up or left early: all that the host must know, in one tensor. `bad` are those positions,
    none where the host knows already that there are none.
    """

    group: "Group"
    canvas: Canvas
    event: Event
    outcome: Bool[Tensor, "G 4"]
    bad: Bool[Tensor, "G N"] | None


class Group:
    """What the host decides of its rows becomes tensors here, once, when rows join or leave."""

    def __init__(self, rule: Rule, rows: list[Row], space: Space) -> None:
        self.rule, self.rows, self.space = rule, rows, space
        self.width = max(len(row.open) for row in rows)
        places = [row.open + [-1] * (self.width - len(row.open)) for row in rows]
        numbers = [[row.step, row.budget, *at] for row, at in zip(rows, places, strict=True)]
        table = torch.tensor(numbers, dtype=torch.long).to(space.table.device)
        self.step, self.budget, self.positions = table[:, 0], table[:, 1], table[:, 2:]
        self.nobody = torch.zeros_like(self.step, dtype=torch.bool)
        # what does not change until rows join, leave or begin a block: of the host's part of info
        self.fixed = {
            "rows": tuple(row.randomness for row in rows),
            "seed": tuple(row.seed for row in rows),
            "block": tuple(row.block for row in rows),
            "budgets": tuple(row.budget for row in rows),
            "lengths": tuple(len(row.open) for row in rows),
        }
        self.canvas = with_starts(Canvas.blank(self.positions < 0, space), rows)
        self.reached = self.canvas  # after the newest pass, before rows that ended were read

    def readings(self) -> list[Canvas]:
        """The canvases that a pass reads: the rows' own, and those that the decoder branches to."""
        if not self.rule.branches:
            return [self.canvas]
        return [self.canvas, *self.rule.decoder.fork(self.canvas, self.space)]  # type: ignore[attr-defined]

    def advance(
        self, readings: list[Canvas], logits: list[Logits], head: Head | None = None
    ) -> Part:
        """What the pass says of each, and what the decoder makes of it; nothing is changed yet.

        With a `head` the logits are hidden states yet.
        """
        seen = [self._seen(*pair, head) for pair in zip(readings, logits, strict=True)]
        (signals, _), *others = seen
        if others:
            signals = replace(signals, branches=tuple(branch for branch, _ in others))
        bad = _anywhere([places for _, places in seen])
        canvas, event = self.rule.decoder.step(self.canvas, signals, self.info(), self.space)
        # a Step may be kept, so the logits do not go with it
        event = event._replace(signals=event.signals.summary())
        if bad is not None:
            bad = bad.masked_fill(canvas.frozen, False)
        return Part(self, canvas, event, self._outcome(canvas, bad), bad)

    def _seen(
        self, canvas: Canvas, logits: Logits, head: Head | None
    ) -> tuple[Signals, Bool[Tensor, "G N"] | None]:
        """The signals of one canvas, and where its logits are not finite."""
        special, rules = self.space.special, (self.rule.forbid_eos, self.rule.rank_ends_last)
        own, shadow = self._constrained(logits[0], canvas), logits[1]
        signals, bad = read_checked(own, special, *rules, head)
        if shadow is None:
            return signals, bad
        beside, bad_beside = read_checked(shadow, special, *rules, head)
        return replace(signals, shadow=beside), _anywhere([bad, bad_beside])

    def _constrained(
        self, logits: Float[Tensor, "G N V"], canvas: Canvas
    ) -> Float[Tensor, "G N V"]:
        """The logits, changed where a row's positions may not hold every token."""
        bound = [(i, row) for i, row in enumerate(self.rows) if row.constraint is not None]
        logits = logits.clone() if bound else logits
        for i, row in bound:
            earlier = [p for block in row.blocks[: row.block] for p in block]
            held = {p: int(row.ids[p]) for p in earlier}
            width = len(row.open)
            tokens = canvas.tokens[i, :width].tolist()
            committed = (canvas.progress[i, :width] >= 1).tolist()
            held |= {p: t for p, t, c in zip(row.open, tokens, committed, strict=True) if c}
            assert row.constraint is not None
            row.constraint(logits[i, :width], row.open, held)
        return logits

    def _outcome(self, canvas: Canvas, bad: Bool[Tensor, "G N"] | None) -> Bool[Tensor, "G 4"]:
        failed = self.nobody if bad is None else bad.any(-1)
        converged = self.rule.decoder.stop(canvas)
        stalled = getattr(self.rule.decoder, "stalled", None)
        gave_up = self.nobody if stalled is None else stalled(canvas)
        exited = getattr(self.rule.decoder, "exited", None)
        left = self.nobody if exited is None else exited(canvas)
        return torch.stack((failed, converged, gave_up, left), dim=-1)

    def accept(self, part: Part) -> None:
        """The pass counts."""
        self.canvas = self.reached = part.canvas
        self.step = self.step + 1
        copies = (1 + self.rule.branches) * (2 if self.rule.shadows else 1)
        for row in self.rows:
            row.step, row.used = row.step + 1, row.used + 1
            positions = len(row.open)
            row.read += positions
            row.shadowed += positions * (copies - 1)

    def info(self) -> StepInfo:
        """Where each row stands in its block."""
        passes = tuple(row.step for row in self.rows)
        return StepInfo(self.step, self.budget, passes=passes, **self.fixed)

    def changed(self, kept: list[int], joining: list[Row]) -> "Group":
        """The rows at these places, and beside them others that begin a block."""
        rows = [self.rows[i] for i in kept] + joining
        group = Group(self.rule, rows, self.space)
        group.canvas = carried_over(self.canvas, kept, group.canvas)
        return group

    def finish(self, ending: list[int]) -> tuple[list[list[int]], list[list[float]]]:
        """Tokens and progress of rows that end, on the host; watchers see what is emitted."""
        canvas, everyone = self.canvas, len(ending) == len(self.rows)
        index = torch.tensor(ending).to(canvas.tokens.device)
        part = canvas if everyone else rows_of(canvas, index)
        tokens = self.rule.decoder.finish(part, self.space)
        self.canvas = canvas.update(tokens=canvas.tokens.index_copy(0, index, tokens))
        # one copy for both: fp32 holds every token id below 2**24
        ids, progress = torch.stack((tokens.float(), part.progress)).tolist()
        return [[int(token) for token in row] for row in ids], progress


def _anywhere(places: list[Bool[Tensor, "G N"] | None]) -> Bool[Tensor, "G N"] | None:
    """Positions that are bad in one canvas or another."""
    known = [one for one in places if one is not None]
    return torch.stack(known).any(0) if len(known) > 1 else next(iter(known), None)


def rows_of(canvas: Canvas, index: Int[Tensor, " K"]) -> Canvas:
    """Some rows of a canvas."""
    return Canvas(
        state=canvas.state[index],
        progress=canvas.progress[index],
        tokens=canvas.tokens[index],
        frozen=canvas.frozen[index],
        memory={name: tensor[index] for name, tensor in canvas.memory.items()},
    )


def with_starts(blank: Canvas, rows: list[Row]) -> Canvas:
    """Rows that begin at a recorded state find it on the canvas, once."""
    for i, row in enumerate(rows):
        if row.start is not None:
            blank, row.start = carried_over(row.start, [0], blank, i), None
    return blank


def carried_over(old: Canvas, kept: list[int], blank: Canvas, at: int = 0) -> Canvas:
    """The kept rows of the old canvas on top of a blank one, cut or padded to its width."""
    if not kept:
        return blank
    index = torch.tensor(kept).to(blank.progress.device)
    width = min(old.progress.shape[1], blank.progress.shape[1])

    def merge(before: Tensor, after: Tensor) -> Tensor:
        if before.ndim > 1:
            after[at : at + len(kept), :width] = before[index, :width]
        else:
            after[at : at + len(kept)] = before[index]
        return after

    def remembered(name: str, before: Tensor) -> Tensor:
        """Per row or per position; rows that join start at zero."""
        rows, positions = blank.progress.shape
        shape = (rows, positions, *before.shape[2:]) if before.ndim > 1 else (rows,)
        after = blank.memory.get(name)
        return merge(before, before.new_zeros(shape) if after is None else after)

    return blank.update(
        state=merge(old.state, blank.state),
        progress=merge(old.progress, blank.progress),
        tokens=merge(old.tokens, blank.tokens),
        memory=blank.memory | {name: remembered(name, one) for name, one in old.memory.items()},
    )

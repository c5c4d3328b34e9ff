"""What decoding yields: one Step per forward pass of a batch, one Decoded per prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from xpredflow.types import Canvas, Event


class StopReason(Enum):
    """Why a row ended, as a sentence for the user."""

    CONVERGED = "every position converged"
    BUDGET = "the budget was used up"
    EARLY_EXIT = "the predictions were sure enough to stop early"
    STALLED = "no position got any further"
    END_OF_TEXT = "a block ended with an end-of-text token"
    BAD_LOGITS = "the model returned logits that are not finite"
    OUT_OF_MEMORY = "one row alone does not fit into memory"
    NOT_CHANGED = "a change could not be made"


class Change(NamedTuple):
    """After so many passes a position holds another token; without one it is open again.

    `hold`: nothing else is predicted there afterwards; else the decoder may revise it.
    """

    after: int
    position: int
    token: int | None = None
    hold: bool = True


FAILURES = (StopReason.BAD_LOGITS, StopReason.OUT_OF_MEMORY, StopReason.NOT_CHANGED)


class Frame(NamedTuple):
    """One row's share of a Step, in plain values: what is traced, shown and served.

    `tokens` are what the positions hold by now; `candidates` are the four likeliest of the pass
    with their `probabilities`; `step_size` is a, None under a decoder that has no such thing.
    """

    row: int
    step: int
    positions: list[int]
    tokens: list[int]
    progress: list[float]
    confidence: list[float]
    reedited: list[bool]
    committed: list[bool]
    candidates: Sequence[list[int]] = ()
    probabilities: Sequence[list[float]] = ()
    step_size: list[float] | None = None


@dataclass(frozen=True)
class Decoded:
    """One decoded prompt. `passes` are forward passes of this row, whatever its neighbours did.

    `shadow_positions` were read in them beside the row's own: passes with shadows are longer.
    `positions_read` counts both, in blocks the positions of the block alone.
    """

    row: int
    text: str
    ids: list[int]
    passes: int
    reason: StopReason
    stop_reason: str
    progress: list[float]
    all_ids: list[int]
    trace: list[Frame] | None = None
    shadow_positions: int = 0
    positions_read: int = 0

    @property
    def failed(self) -> bool:
        """True where decoding had to be given up; `stop_reason` says where."""
        return self.reason in FAILURES

    @property
    def tokens_per_forward(self) -> float:
        """How many of the shown tokens one forward pass yielded on average."""
        return len(self.ids) / max(self.passes, 1)


@dataclass(frozen=True)
class Step:
    """One forward pass of a batch, as every consumer sees it: view, trace, server, training.

    `positions` are absolute in each row, -1 for padding; `finished` are the rows that ended here.
    """

    rows: Sequence[int]
    index: Sequence[int]
    positions: Int[Tensor, "B N"]
    canvas: Canvas
    event: Event
    finished: Sequence[Decoded] = ()

    def frames(self) -> list[Frame]:
        """The step row by row, without padding; one copy from the device for all of it."""
        return self._frames(slice(None))

    def frame(self, i: int) -> Frame:
        """The i-th of its rows."""
        return self._frames(slice(i, i + 1))[0]

    def _frames(self, some: slice) -> list[Frame]:
        canvas, event, signals = self.canvas, self.event, self.event.signals
        action = event.action
        fraction = (
            torch.full_like(canvas.progress, torch.nan) if action is None else action.fraction
        )
        whole = (self.positions, canvas.tokens, event.reedited, event.committed)
        real = (canvas.progress, signals.confidence, fraction)
        table = torch.cat(
            (
                torch.stack([column[some].float() for column in (*whole, *real)], dim=-1),
                signals.top_tokens[some].float(),  # fp32 holds every token id below 2**24
                signals.top_probs[some],
            ),
            dim=-1,
        ).cpu()
        held = table[..., :2].long().tolist()
        marks = table[..., 2:4].bool().tolist()
        numbers = table[..., 4:7].tolist()
        tokens, probabilities = table[..., 7:11].long().tolist(), table[..., 11:].tolist()
        columns = zip(self.rows[some], self.index[some], held, marks, numbers, strict=True)
        return [
            _frame(row, step, held, marks, numbers, tokens[i], probabilities[i])
            for i, (row, step, held, marks, numbers) in enumerate(columns)
        ]


def _frame(
    row: int,
    step: int,
    held: list[list[int]],
    marks: list[list[bool]],
    numbers: list[list[float]],
    candidates: list[list[int]],
    probabilities: list[list[float]],
) -> Frame:
    """One row from its table, position by position; what has no position is padding.

    Beside rows with a step size, a row of a decoder that has none holds NaN.
    """
    real = [i for i, (position, _) in enumerate(held) if position >= 0]
    step_size = [numbers[i][2] for i in real]
    return Frame(
        row=row,
        step=step,
        positions=[held[i][0] for i in real],
        tokens=[held[i][1] for i in real],
        progress=[numbers[i][0] for i in real],
        confidence=[numbers[i][1] for i in real],
        reedited=[marks[i][0] for i in real],
        committed=[marks[i][1] for i in real],
        candidates=[candidates[i] for i in real],
        probabilities=[probabilities[i] for i in real],
        step_size=None if any(a != a for a in step_size) else step_size,
    )

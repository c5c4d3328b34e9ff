"""What decoding yields: one Step per forward pass of a batch, one Decoded per prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from jaxtyping import Bool, Int
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
        """The step row by row, without padding."""
        return [self.frame(i) for i in range(len(self.rows))]

    def frame(self, i: int) -> Frame:
        """The i-th of its rows."""
        real = self.positions[i] >= 0
        canvas, event = self.canvas, self.event
        columns = (
            self.positions,
            canvas.tokens,
            canvas.progress,
            event.signals.confidence,
            event.reedited,
            event.committed,
            event.signals.top_tokens,
            event.signals.top_probs,
        )
        values = [column[i][real].tolist() for column in columns]
        return Frame(self.rows[i], self.index[i], *values, step_size=self._step_size(i, real))

    def _step_size(self, i: int, real: Bool[Tensor, " N"]) -> list[float] | None:
        """a of one row; beside rows that have one, a row of a decoder without it has NaN."""
        if self.event.action is None:
            return None
        fraction = self.event.action.fraction[i][real]
        return None if fraction.isnan().any() else fraction.tolist()

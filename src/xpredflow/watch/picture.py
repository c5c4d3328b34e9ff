"""One row as a picture: its text shaded by progress, from the Frames that the engine yields."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Decoded, Frame, Step
from xpredflow.types import Model
from xpredflow.watch.text import BREAK, END, TokenText
from xpredflow.watch.trace import Layout, Recording

SETTLED = 0.9  # progress from which a position is drawn as text rather than as a guess
FADED, BRIGHT = (92, 92, 104), (125, 190, 235)
REEDITED = Style(color="red", underline=True)
COMMITTED = Style(color="green", bold=True)
DIM = Style(dim=True)
STYLES = {"reedited": REEDITED, "committed": COMMITTED, "context": DIM, "end": DIM}


class Cell(NamedTuple):
    """One token as it is drawn; `mark` is of STYLES or empty, a `guess` may still change."""

    text: str
    progress: float
    mark: str
    guess: bool


class RowPicture:
    """What a row looks like by now; re-edits and commitments are marked until they were drawn."""

    def __init__(
        self, layout: Layout, text: TokenText, ends: Sequence[int], *, colour: bool = True
    ) -> None:
        self.layout, self.text, self.ends, self.colour = layout, text, tuple(ends), colour
        self.open, self.infill = layout.positions, layout.context is not None
        # what is not open is context: all of it is shown in an infilled text, else none
        context = layout.context or []
        self.shown = list(range(len(context))) if self.infill else self.open
        self.restart()

    def restart(self) -> None:
        """As before the first pass."""
        self.tokens: dict[int, int | None] = dict(enumerate(self.layout.context or []))
        self.tokens.update(dict.fromkeys(self.open))
        self.progress = dict.fromkeys(self.open, 0.0)
        self.taken = 0
        self.reedited: set[int] = set()
        self.committed: set[int] = set()
        self.reedits = 0
        self.last: Frame | None = None
        self.done: Decoded | None = None
        self.moving: int | None = None  # where in the text the first guess stands

    @classmethod
    def of(cls, model: Model, row: Row, *, colour: bool = True) -> "RowPicture":
        """Of a row that is about to be decoded."""
        text = TokenText(model.tokenizer)
        return cls(Layout.of(row), text, model.special.ends, colour=colour)

    @classmethod
    def recorded(cls, recording: Recording, *, colour: bool = True) -> "RowPicture":
        """Of a recorded row, before its first frame."""
        return cls(recording.layout, recording.text, recording.header.ends, colour=colour)

    def add(self, step: Step) -> None:
        """Take in this row's share of a step."""
        for frame in step.frames():
            if frame.row == self.layout.row:
                self.take(frame)
        for done in step.finished:
            if done.row == self.layout.row:
                self.done = done

    def take(self, frame: Frame) -> None:
        """Remember a frame."""
        self.tokens.update(zip(frame.positions, frame.tokens, strict=True))
        self.progress.update(zip(frame.positions, frame.progress, strict=True))
        self.reedited.update(_where(frame.positions, frame.reedited))
        self.committed.update(_where(frame.positions, frame.committed))
        self.reedits += sum(frame.reedited)
        self.last = frame
        self.taken += 1

    def drawn(self) -> None:
        """The marks have been seen."""
        self.reedited.clear()
        self.committed.clear()

    def response(self) -> Text:
        """The row's text, token by token in the colour of its progress."""
        text, self.moving = Text(), None
        for cell in self.cells():
            if cell.guess and self.moving is None:
                self.moving = len(text)
            text.append(
                cell.text, STYLES.get(cell.mark) or shade(cell.progress, colour=self.colour)
            )
        return text

    def cells(self) -> list[Cell]:
        """The tokens that are shown by now."""
        shown = self._without_tail()
        pieces = self.text.pieces([self.tokens[position] for position in shown])
        cells, ended = [], False
        for position, piece in zip(shown, pieces, strict=True):
            progress = self.progress.get(position, 1.0)
            guess = progress < SETTLED and self.done is None
            if self.tokens[position] in self.ends:
                piece, ended = ("" if ended or self.done else END), True
            mark = "end" if ended else self._mark(position)
            cells.append(
                Cell(piece.replace("\n", BREAK) if guess else piece, progress, mark, guess)
            )
        return cells

    def _without_tail(self) -> list[int]:
        """Positions up to the first of the end tokens that close the text."""
        shown, at_end = self.shown, (*self.ends, None)
        if self.done is not None and not self.infill:
            return shown[: len(self.done.ids)]
        last = next(
            (i for i in range(len(shown) - 1, -1, -1) if self.tokens[shown[i]] not in at_end), -1
        )
        rest = [self.tokens[position] for position in shown[last + 1 :]]
        # open positions are part of the picture unless the text has ended before them
        return shown if rest and rest[0] is None else shown[: last + 2]

    def _mark(self, position: int) -> str:
        if position in self.reedited:
            return "reedited"
        if position in self.committed:
            return "committed"
        return "" if position in self.progress else "context"

    def status(self) -> str:
        """Where the row stands, in one line."""
        if self.done is not None:
            return summary(self.done)
        cap, frame = self.layout.budget, self.last
        if frame is None:
            return f"pass 0/{cap}"
        count = max(len(frame.progress), 1)
        settled = sum(t >= SETTLED for t in self.progress.values())
        parts = (
            f"pass {frame.step + 1}/{cap}",
            f"progress {sum(frame.progress) / count:.2f} (min {min(frame.progress):.2f})",
            f"conf {sum(frame.confidence) / count:.2f}",
            f"re-edits {self.reedits}",
            f"{settled / (frame.step + 1):.1f} tok/pass",
        )
        return ", ".join(parts)


def shade(progress: float, *, colour: bool = True) -> Style:
    """Faint at t = 0, the terminal's own colour at t = 1; without colours, dim or not."""
    if progress >= 1 - 1e-6:
        return Style()
    if not colour:
        return DIM if progress < SETTLED else Style()
    red, green, blue = (round(a + (b - a) * progress) for a, b in zip(FADED, BRIGHT, strict=True))
    return Style(color=f"rgb({red},{green},{blue})")


def summary(done: Decoded) -> str:
    """One line about a finished row."""
    rate = f"{done.tokens_per_forward:.1f} tokens per pass"
    return f"{passes(done.passes)} · {rate} · {done.stop_reason}"


def passes(count: int) -> str:
    """A number of passes in words."""
    return "1 pass" if count == 1 else f"{count} passes"


def _where(positions: list[int], marks: list[bool]) -> list[int]:
    return [position for position, marked in zip(positions, marks, strict=True) if marked]

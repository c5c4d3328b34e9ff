"""Watching one row in a terminal: its text as it settles, from the Steps the engine yields."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.style import Style
from rich.text import Text

from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Decoded, Frame, Step
from xpredflow.types import Model

SETTLED = 0.9  # progress from which a position is drawn as text rather than as a guess
OPEN, BREAK, END, BROKEN = "░", "↵", "∎", "\N{REPLACEMENT CHARACTER}"
FADED, BRIGHT = (92, 92, 104), (125, 190, 235)
REEDITED = Style(color="red", underline=True)
COMMITTED = Style(color="green", bold=True)
DIM = Style(dim=True)
FRAMES_PER_SECOND = 24
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_PICTURES |= {0x7F: "\N{SYMBOL FOR DELETE}"} | dict.fromkeys(range(0x80, 0xA0), BROKEN)
# marks that reorder a line would let a text look like another one
_PICTURES |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], BROKEN)


class TokenText:
    """What each token of a row looks like: characters split over tokens stay whole."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.known: dict[tuple[int, ...], str] = {}

    def pieces(self, tokens: Sequence[int | None]) -> list[str]:
        """One string per token, the glyph of an open position for None.

        A character made of several byte tokens stands at its first, its others are empty.
        """
        pieces: list[str] = []
        while len(pieces) < len(tokens):
            pieces += self._character(tokens[len(pieces) : len(pieces) + 4])
        return pieces

    def _character(self, tokens: Sequence[int | None]) -> list[str]:
        if tokens[0] is None:
            return [OPEN]
        run: tuple[int, ...] = ()
        for token in tokens:  # UTF-8 has at most four bytes per character
            if token is None:
                break
            run = (*run, token)
            text = self._decode(run)
            if BROKEN not in text:
                return [visible(text)] + [""] * (len(run) - 1)
        return [BROKEN]

    def _decode(self, run: tuple[int, ...]) -> str:
        if run not in self.known:
            self.known[run] = (
                f"{run[0]} " if self.tokenizer is None else self.tokenizer.decode(list(run))
            )
        return self.known[run]


def visible(text: str) -> str:
    """Control characters as pictures: a model's output must not steer the terminal."""
    return text.translate(_PICTURES)


class LiveView:
    """One row on a terminal: shaded by progress, re-edits and commitments marked, a status line.

    Steps may come faster than a terminal can draw: marks stay until they have been drawn once.
    """

    def __init__(
        self,
        model: Model,
        row: Row,
        prompt: str,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.row, self.console, self.clock = row, console, clock
        self.prompt = visible(prompt)
        self.text = TokenText(model.tokenizer)
        self.ends = model.special.ends
        self.open = [position for block in row.blocks for position in block]
        # what is not open is context: all of it is shown in an infilled text, else none
        self.shown = list(range(row.length)) if row.infill else self.open
        self.tokens: dict[int, int | None] = dict(enumerate(row.ids.tolist()))
        self.tokens.update(dict.fromkeys(self.open))
        self.progress = dict.fromkeys(self.open, 0.0)
        self.reedited: set[int] = set()
        self.committed: set[int] = set()
        self.reedits = 0
        self.last: Frame | None = None
        self.drawn_at = -1.0

    def __enter__(self) -> "LiveView":
        self.live = Live(
            self.render(), console=self.console, auto_refresh=False, transient=True
        ).__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        # whoever interrupts wants to keep what there was to see
        self.live.transient = kind is None
        self._draw()
        self.live.stop()

    def add(self, step: Step) -> None:
        """Take in this row's share of a step, and draw it unless the last drawing is too recent."""
        for frame in step.frames():
            if frame.row == self.row.number:
                self.take(frame)
        if self.clock() - self.drawn_at >= 1 / FRAMES_PER_SECOND:
            self._draw()

    def take(self, frame: Frame) -> None:
        """Remember a frame."""
        self.tokens.update(zip(frame.positions, frame.tokens, strict=True))
        self.progress.update(zip(frame.positions, frame.progress, strict=True))
        self.reedited.update(_where(frame.positions, frame.reedited))
        self.committed.update(_where(frame.positions, frame.committed))
        self.reedits += sum(frame.reedited)
        self.last = frame

    def _draw(self) -> None:
        self.live.update(self.render(), refresh=True)
        self.drawn_at = self.clock()
        self.reedited.clear()
        self.committed.clear()

    def render(self) -> RenderableType:
        """The prompt, the response in what room there is, and the status line."""
        prompt = Text(self.prompt, style=DIM, overflow="ellipsis")
        head = prompt.wrap(self.console, self.console.width)[:3] if not self.row.infill else []
        room = max(self.console.height - len(head) - 4, 3)
        return Group(*head, Text(), *self._window(self.response(), room), Text(), self.status())

    def _window(self, text: Text, room: int) -> list[Text]:
        """The lines that fit, from the one before the first that is still moving."""
        lines = list(text.wrap(self.console, self.console.width, overflow="fold"))
        if len(lines) <= room:
            return lines
        settled = text[: self._moving].wrap(self.console, self.console.width, overflow="fold")
        first = max(0, min(len(settled) - 2, len(lines) - room))
        return lines[first : first + room]

    def response(self) -> Text:
        """The row's text, token by token in the colour of its progress."""
        shown = self._without_tail()
        pieces = self.text.pieces([self.tokens[position] for position in shown])
        text, ended, self._moving = Text(), False, None
        for position, piece in zip(shown, pieces, strict=True):
            if self.progress.get(position, 1.0) < SETTLED:
                piece = piece.replace("\n", BREAK)
                self._moving = len(text) if self._moving is None else self._moving
            if self.tokens[position] in self.ends:
                piece, ended = ("" if ended else END), True
            text.append(piece, DIM if ended else self._style(position))
        return text

    def _without_tail(self) -> list[int]:
        """Positions up to the first of the end tokens that close the text."""
        shown, at_end = self.shown, (*self.ends, None)
        last = next(
            (i for i in range(len(shown) - 1, -1, -1) if self.tokens[shown[i]] not in at_end), -1
        )
        rest = [self.tokens[position] for position in shown[last + 1 :]]
        # open positions are part of the picture unless the text has ended before them
        return shown if rest and rest[0] is None else shown[: last + 2]

    def _style(self, position: int) -> Style:
        if position in self.reedited:
            return REEDITED
        if position in self.committed:
            return COMMITTED
        if position not in self.progress:
            return DIM
        return shade(self.progress[position], colour=not self.console.no_color)

    def status(self) -> Text:
        """Where the row stands, in one line."""
        cap, frame = sum(self.row.budgets), self.last
        if frame is None:
            return Text(f"pass 0/{cap}", style=DIM)
        count = max(len(frame.progress), 1)
        settled = sum(t >= SETTLED for t in self.progress.values())
        parts = (
            f"pass {frame.step + 1}/{cap}",
            f"progress {sum(frame.progress) / count:.2f} (min {min(frame.progress):.2f})",
            f"conf {sum(frame.confidence) / count:.2f}",
            f"re-edits {self.reedits}",
            f"{settled / (frame.step + 1):.1f} tok/pass",
        )
        line = Text(", ".join(parts), style=DIM, no_wrap=True)
        # the terminal echoes ^C here: at the very edge it would wrap and shift what is redrawn
        line.truncate(max(self.console.width - 4, 1), overflow="ellipsis")
        return line


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
    passes = "1 pass" if done.passes == 1 else f"{done.passes} passes"
    return f"{passes} · {done.tokens_per_forward:.1f} tokens per pass · {done.stop_reason}"


def _where(positions: list[int], marks: list[bool]) -> list[int]:
    return [position for position, marked in zip(positions, marks, strict=True) if marked]

"""Decoding on a terminal while it happens: one row in full, or several rows side by side."""

import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Decoded, Frame, Step
from xpredflow.types import Model
from xpredflow.watch.picture import DIM, RowPicture
from xpredflow.watch.picture import passes as in_words
from xpredflow.watch.text import visible
from xpredflow.watch.trace import Recording

FRAMES_PER_SECOND = 24


class LiveView:
    """One row as it settles, which stays on the screen when it is done.

    Steps may come faster than a terminal can draw: marks stay until they have been drawn once.
    With a `delay` every step is drawn and shown for so many seconds.
    """

    def __init__(
        self,
        model: Model,
        row: Row,
        prompt: str,
        console: Console,
        *,
        delay: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.picture = RowPicture.of(model, row, colour=not console.no_color)
        self.prompt, self.console, self.delay = visible(prompt), console, delay
        self.clock, self.sleep = clock, sleep
        self.drawn_at = -1.0

    def __enter__(self) -> "LiveView":
        self.live = Live(self.render(), console=self.console, auto_refresh=False).__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._draw()
        self.live.stop()

    def add(self, step: Step) -> None:
        """Take in this row's share of a step, and draw it unless the last drawing is too recent."""
        self.picture.add(step)
        if self.delay or self.clock() - self.drawn_at >= 1 / FRAMES_PER_SECOND:
            self._draw()
        if self.delay:
            self.sleep(self.delay)

    def _draw(self) -> None:
        self.live.update(self.render(), refresh=True)
        self.drawn_at = self.clock()
        self.picture.drawn()

    def render(self) -> RenderableType:
        """The prompt, the response in what room there is (all of it in the end), and the status."""
        prompt = Text(self.prompt, style=DIM, overflow="ellipsis")
        infill = self.picture.infill
        head = [] if infill else prompt.wrap(self.console, self.console.width)[:3]
        room = max(self.console.height - len(head) - 4, 3)
        text = self.picture.response()
        lines = [text] if self.picture.done is not None else self._window(text, room)
        return Group(*head, Text(), *lines, Text(), self._status())

    def _window(self, text: Text, room: int) -> list[Text]:
        """The lines that fit, from the one before the first that is still moving."""
        lines = list(text.wrap(self.console, self.console.width, overflow="fold"))
        if len(lines) <= room:
            return lines
        before = text[: self.picture.moving]
        settled = before.wrap(self.console, self.console.width, overflow="fold")
        first = max(0, min(len(settled) - 2, len(lines) - room))
        return lines[first : first + room]

    def _status(self) -> Text:
        line = Text(self.picture.status(), style=DIM, no_wrap=True)
        # the terminal echoes ^C here: at the very edge it would wrap and shift what is redrawn
        line.truncate(max(self.console.width - 4, 1), overflow="ellipsis")
        return line


@dataclass
class Column:
    """One decoder's way through a row: its passes, and what is said of the answer in the end."""

    title: str
    picture: RowPicture
    frames: Sequence[Frame]
    done: Decoded | None
    verdict: Text

    @classmethod
    def of(cls, recording: Recording, *, colour: bool = True) -> "Column":
        """A recorded row, with the grader's verdict or else why it ended."""
        picture = RowPicture.recorded(recording, colour=colour)
        verdict = verdict_text(recording)
        return cls(recording.title, picture, recording.frames, recording.decoded, verdict)

    def show(self, passes: int) -> None:
        """Let the picture be as it was after so many passes."""
        if passes < self.picture.taken:
            self.picture.restart()
        for frame in self.frames[self.picture.taken : passes]:
            self.picture.drawn()
            self.picture.take(frame)
        self.picture.done = self.done if passes >= len(self.frames) else None


def verdict_text(recording: Recording) -> Text:
    """Right or wrong and why; of an answer that nobody graded, why it ended."""
    done, verdict = recording.decoded, recording.verdict
    if verdict is None:
        return Text("not finished" if done is None else visible(done.stop_reason), style=DIM)
    if verdict.passed:
        return Text("right", style="green")
    reason = textwrap.shorten(visible(verdict.reason), 80, placeholder=" ...")
    return Text.assemble(("wrong", "red"), f", {reason}")


class SideBySide:
    """Columns that advance together, a pass at a time: who needs fewer passes is done earlier."""

    def __init__(
        self,
        columns: list[Column],
        console: Console,
        *,
        delay: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.columns, self.console = columns, console
        self.delay, self.sleep = delay, sleep

    def play(self) -> None:
        """Every pass on a terminal that can redraw; elsewhere only how it ends."""
        if not self.console.is_terminal or self.console.is_dumb_terminal:
            self.console.print(self.render(self.last, marks=False))
            return
        with Live(self.render(0), console=self.console, auto_refresh=False) as live:
            for passes in range(1, self.last + 1):
                self.sleep(self.delay)
                live.update(self.render(passes), refresh=True)
            live.update(self.render(self.last, marks=False), refresh=True)

    @property
    def last(self) -> int:
        """The passes of the slowest."""
        return max(len(column.frames) for column in self.columns)

    def render(self, passes: int, *, marks: bool = True) -> Table:
        """The columns after so many passes; `marks` are those of the last one."""
        for column in self.columns:
            column.show(passes)
            if not marks or passes > len(column.frames):
                column.picture.drawn()
        table = Table(expand=True, show_lines=True)
        for column in self.columns:
            table.add_column(column.title, ratio=1, overflow="fold")
        table.add_row(*(column.picture.response() for column in self.columns))
        table.add_row(*(self._foot(column, passes) for column in self.columns))
        return table

    def _foot(self, column: Column, passes: int) -> Text:
        if passes < len(column.frames):
            return Text(f"pass {passes}", style=DIM)
        used = len(column.frames) if column.done is None else column.done.passes
        return Text(f"{in_words(used)}: ").append_text(column.verdict)

"""Progress on a terminal: how much is done, how much of it is right, how long the rest may take.

with Bar("minicode", total=500) as bar:                 # answers judged
    bar.answer(right)
with Bar.of_rows(rows) as bar:                          # forward passes, which budgets bound
    bar.add(step)

On anything but a terminal a bar is silent.
"""

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Step
from xpredflow.models import embedded
from xpredflow.types import Model


def terminal(stream: Any) -> Console | None:
    """A console on a terminal that can redraw lines; None for a pipe, a file or a dumb one."""
    if not stream.isatty():
        return None
    console = Console(file=stream, highlight=False)
    return None if console.is_dumb_terminal else console


class Bar(AbstractContextManager):
    """A title, a bar and the time left. What advances it: passes of rows, answers, or updates."""

    def __init__(
        self, title: str, total: float, *, completed: float = 0, console: Console | None = None
    ) -> None:
        self.title, self.total, self.start = title, total, completed
        self.console = console or terminal(sys.stderr)
        self.seen = self.right = 0
        self.passes_left: dict[int, int] = {}
        self.rows = 0

    @classmethod
    def of_rows(
        cls, rows: Iterable[Row], title: str = "", *, console: Console | None = None
    ) -> "Bar":
        """Moves with every pass of these rows; one that ends early gives back what it had left."""
        left = {row.number: sum(row.budgets) for row in rows}
        made = cls(title, max(sum(left.values()), 1), console=console)
        made.passes_left, made.rows = left, len(left)
        return made

    def __enter__(self) -> "Bar":
        if self.console is None:
            return self
        columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn()]
        if self.rows:
            columns.append(TextColumn("{task.completed:.0f} of {task.total:.0f} passes at most"))
        self.progress = Progress(
            *columns, TimeRemainingColumn(), console=self.console, transient=True
        )
        self.task = self.progress.add_task(
            self._title(), total=self.total, completed=int(self.start)
        )
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console is not None:
            self.progress.stop()

    def add(self, step: Step) -> None:
        """A pass of the step's rows."""
        used = 0
        for row in step.rows:
            if row in self.passes_left:
                self.passes_left[row] -= 1
                used += 1
        for done in step.finished:
            used += self.passes_left.pop(done.row, 0)
        self.advance(used)

    def answer(self, right: bool) -> None:
        """One more answer was judged; the bar of rows moves with their passes instead."""
        self.seen, self.right = self.seen + 1, self.right + bool(right)
        self.advance(0 if self.rows else 1)

    def advance(self, amount: float = 1, title: str | None = None) -> None:
        """So much more is done; `title` replaces the one so far."""
        self.title = self.title if title is None else title
        if self.console is not None:
            self.progress.update(self.task, advance=amount, description=self._title())

    def _title(self) -> str:
        parts = [self.title] if self.title else []
        if self.rows:
            parts.append(f"{self.rows - len(self.passes_left)} of {self.rows} prompts")
        if self.seen:
            parts.append(f"{self.right}/{self.seen} right")
        return " ".join(parts)


class CountBar(Bar):
    """Called with every answer; `is_right` says whether it counts as one."""

    def __init__(self, title: str, total: int, is_right: Callable[[Any], bool]) -> None:
        super().__init__(title, total)
        self.is_right = is_right

    def __enter__(self) -> "CountBar":
        super().__enter__()
        return self

    def __call__(self, answer: Any) -> None:
        self.answer(self.is_right(answer))


def BarView(rows: list[Row], console: Console) -> Bar:
    """The bar of rows by its former name."""
    return Bar.of_rows(rows, console=console)


def load_model(source: dict[str, Any]) -> Model:
    """The model, on the accelerator where there is one; a terminal is told that it is loading."""
    arguments = {"source": embedded.DEFAULT, "device": None, **source}
    console = terminal(sys.stderr)
    waiting = console.status(f"loading {arguments['source']}") if console else nullcontext()
    with waiting:
        return embedded.load(**arguments)

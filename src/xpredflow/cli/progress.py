"""Progress on a terminal: how much is done, how much of it is right, how long the rest may take."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Step


class BarView:
    """Handed every Step; counts in passes, whose number the rows' budgets bound."""

    def __init__(self, rows: list[Row], console: Console) -> None:
        self.left = {row.number: sum(row.budgets) for row in rows}
        self.rows = len(rows)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.total:.0f} passes at most"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )

    def __enter__(self) -> "BarView":
        self.task = self.bar.add_task(self._title(), total=max(sum(self.left.values()), 1))
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def add(self, step: Step) -> None:
        """Advance by one step per row; a row that ends early gives back what it did not need."""
        used = len(step.rows)
        for row in step.rows:
            self.left[row] -= 1
        for done in step.finished:
            used += self.left.pop(done.row)
        self.bar.update(self.task, advance=used, description=self._title())

    def _title(self) -> str:
        return f"{self.rows - len(self.left)} of {self.rows} prompts"


class CountBar(AbstractContextManager):
    """Called with every answer; `is_right` says whether it counts as one."""

    def __init__(self, title: str, total: int, is_right: Callable[[Any], bool]) -> None:
        self.title, self.total, self.is_right = title, total, is_right
        self.right = self.seen = 0

    def __enter__(self) -> "CountBar":
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task(self.title, total=self.total)
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def __call__(self, answer: Any) -> None:
        self.seen, self.right = self.seen + 1, self.right + self.is_right(answer)
        title = f"{self.title} {self.right}/{self.seen} right"
        self.bar.update(self.task, advance=1, description=title)

"""The bar of an evaluation: it moves with every forward pass and counts the answers judged."""

import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class PassesBar:
    """An `evaluation.Watch`; silent where `shown` is off or standard error is no terminal.

    Budgets bound the passes; an answer that ends early gives back what it had left.
    """

    def __init__(self, title: str, shown: bool = True) -> None:
        self.title = title
        self.passes = self.right = self.judged = 0
        self.used: dict[int, int] = {}
        self.bar: Progress | None = None
        if shown and sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task(title, total=None)

    def __enter__(self) -> "PassesBar":
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def begin(self, left: int, passes: int) -> None:
        """A phase: so many answers, of so many passes each at most."""
        self.passes, self.used = passes, {}
        if self.bar is not None:
            self.bar.reset(self.task, total=max(left * passes, 1), description=self.title)

    def step(self, step: Any) -> None:
        """One pass of a batch."""
        forward = len(step.rows)
        for row in step.rows:
            self.used[row] = self.used.get(row, 0) + 1
        for done in step.finished:
            forward += max(self.passes - self.used.pop(done.row), 0)
        if self.bar is not None:
            self.bar.update(self.task, advance=forward)

    def sample(self, sample: Any) -> None:
        """One answer was judged, or kept where nothing judges."""
        passed = getattr(sample, "passed", getattr(sample, "solved", None))
        self.judged, self.right = self.judged + 1, self.right + bool(passed)
        told = f"{self.judged} answers" + ("" if passed is None else f", {self.right} right")
        if self.bar is not None:
            self.bar.update(self.task, description=f"{self.title}: {told}")

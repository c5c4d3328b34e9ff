"""A progress bar over judged answers: how many there are and how many are right."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


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

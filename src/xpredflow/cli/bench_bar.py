"""What `compare` and `reproduce` show while they measure, and say when they are stopped."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from xpredflow.engine.steps import Step
from xpredflow.evaluation.run import Sample
from xpredflow.experiments.bench import Watch


class BenchBar(Watch):
    """A line per finished trial; on a terminal also a bar that moves with every pass.

    Passes are bounded by the budget: an answer that ends early gives back what it had left.
    """

    def __init__(self, console: Console | None = None) -> None:
        on_terminal = sys.stderr.isatty()
        self.console = console or (Console(stderr=True, highlight=False) if on_terminal else None)
        self.count, self.begun, self.kept = 0, 0, 0
        self.bar: Progress | None = None

    def say(self, line: str) -> None:
        typer.echo(line, err=True)

    def loading(self, source: str) -> AbstractContextManager[Any]:
        return self.console.status(f"loading {source}") if self.console else nullcontext()

    def trials(self, count: int) -> None:
        self.count = count

    @contextmanager
    def trial(self, title: str, answers: int, cap: int) -> Iterator[None]:
        self.begun += 1
        of = f"{self.begun} of {self.count}: " if self.count else ""
        self.title, self.cap = f"{of}{title}", cap
        self.right, self.judged = 0, 0
        self.used: dict[int, int] = {}
        if self.console is None:
            yield
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self.console, transient=True) as self.bar:
            self.task = self.bar.add_task(self.title, total=max(answers * cap, 1))
            try:
                yield
            finally:
                self.bar = None

    def step(self, step: Step) -> None:
        if self.bar is None:
            return
        forward = len(step.rows)
        for row in step.rows:
            self.used[row] = self.used.get(row, 0) + 1
        for done in step.finished:
            forward += max(0, self.cap - self.used.pop(done.row))
        self.bar.update(self.task, advance=forward)

    def sample(self, sample: Sample) -> None:
        self.kept += 1
        self.judged, self.right = self.judged + 1, self.right + sample.passed
        if self.bar is not None:
            title = f"{self.title}, {self.right} of {self.judged} right"
            self.bar.update(self.task, description=title)


@contextmanager
def stoppable(watch: BenchBar, out: Path) -> Iterator[None]:
    """Ctrl-C says what was kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        answers = "1 new answer is" if watch.kept == 1 else f"{watch.kept} new answers are"
        typer.echo(
            f"stopped: {answers} kept in {out / 'samples'}; the same command goes on there",
            err=True,
        )
        raise typer.Exit(130) from None

"""A training as it goes on: a bar with the time left on a terminal, a line per update elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from xpredflow.processes import join_processes


class UpdateView:
    """Told of every update; `speaks` only in the first of several processes."""

    def __init__(self, updates: int, speaks: bool = True) -> None:
        self.updates, self.speaks = updates, speaks
        self.bar: Progress | None = None
        console = Console(stderr=True, highlight=False)
        if speaks and sys.stderr.isatty() and not console.is_dumb_terminal:
            columns = (
                BarColumn(bar_width=24),
                TextColumn("{task.completed:.0f} of {task.total:.0f}"),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
            )
            self.bar = Progress(*columns, console=console, transient=True)
            self.task = self.bar.add_task("starting", total=updates)

    def __enter__(self) -> "UpdateView":
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def show(self, update: int, line: str, warning: str | None = None) -> None:
        """One update, and a warning that stays on the screen."""
        if self.bar is not None:
            self.bar.update(self.task, completed=update, description=line)
        elif self.speaks:
            typer.echo(f"update {update}/{self.updates}, {line}", err=True)
        if warning and self.speaks:
            self.note(f"warning: {warning}")

    def note(self, text: str) -> None:
        """A line above the bar."""
        if self.bar is not None:
            self.bar.console.print(text, soft_wrap=True)
        elif self.speaks:
            typer.echo(text, err=True)


@contextmanager
def watched(updates: int) -> Iterator[UpdateView]:
    """A view for a training; Ctrl-C inside says what was kept, with exit code 130."""
    view = UpdateView(updates, speaks=join_processes().rank == 0)
    try:
        with view:
            yield view
    except KeyboardInterrupt as stopped:
        if view.speaks:
            typer.echo(str(stopped) or "interrupted before the first update", err=True)
        raise typer.Exit(130) from None


def show_picture(picture: Path | None, name: str = "plot") -> None:
    """Where a promised picture is, or in one line why there is none."""
    from xpredflow.training.common.plots import NO_PICTURE, can_draw

    if picture is not None:
        typer.echo(f"{name}: {picture}")
    elif not can_draw():
        typer.echo(NO_PICTURE, err=True)


def set_threads(threads: int | None) -> None:
    """As many CPU threads as the user says."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def shown(value: Any) -> str:
    """A number in three digits; a dash where there was nothing to measure."""
    return "–" if value is None else f"{value:.3g}"

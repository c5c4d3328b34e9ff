"""What the training commands share: how Ctrl-C ends them, threads, pictures, numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from xpredflow.cli.progress import UpdatesBar
from xpredflow.processes import join_processes


@contextmanager
def watched(updates: int) -> Iterator[UpdatesBar]:
    """A bar for a training; Ctrl-C inside says what was kept, with exit code 130."""
    bar = UpdatesBar(updates, shown=join_processes().rank == 0)
    try:
        with bar:
            yield bar
    except KeyboardInterrupt as stopped:
        bar.note(str(stopped) or "interrupted before the first update")
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

        join_processes()  # which shares the cores out where nobody says how many threads there are
        torch.set_num_threads(threads)


def shown(value: Any) -> str:
    """A number in three digits; a dash where there was nothing to measure."""
    return "–" if value is None else f"{value:.3g}"

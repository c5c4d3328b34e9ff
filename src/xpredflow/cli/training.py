"""What the training commands share once torch is loaded: settings, progress, the end of a run."""

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from xpredflow.errors import InputError
from xpredflow.sandbox import Sandbox
from xpredflow.settings import configured
from xpredflow.training.common.plots import plot_losses
from xpredflow.training.pretrain.run import PretrainConfig, Pretraining, Progress


def run_pretraining(out: Path, values: dict[str, Any], resume: bool, threads: int | None) -> None:
    """Train to the end with a bar on a terminal, or a line now and then elsewhere."""
    if threads is not None:
        torch.set_num_threads(threads)
    torch.set_flush_denormal(True)  # decayed moments turn denormal, which CPUs handle very slowly
    config = configured(PretrainConfig, values, "pretrain")
    with _sandbox() as box:
        training = Pretraining(config, out, resume, run=None if box is None else box.runner)
        try:
            _train(training)
        except KeyboardInterrupt:
            typer.echo(f"stopped at step {training.step}; go on with --resume", err=True)
            raise typer.Exit(130) from None
    training.finish(out / "model")
    typer.echo(f"checkpoint: {out / 'model'}")
    if plot_losses(out / "log.jsonl", out / "loss.png"):
        typer.echo(f"plot: {out / 'loss.png'}")


def _sandbox() -> AbstractContextManager[Sandbox | None]:
    """Where programs are probed; a machine without a sandbox probes the other tasks only."""
    try:
        return Sandbox()
    except InputError as error:
        typer.echo(f"note: programs are not probed: {error}", err=True)
        return nullcontext()


def _train(training: Pretraining) -> None:
    if not sys.stderr.isatty():
        for now in training:
            typer.echo(_line(now, training.config.updates), err=True)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=training.config.updates, completed=training.step)
        for now in training:
            bar.update(task, completed=now.step, description=_line(now, training.config.updates))


def _line(now: Progress, steps: int) -> str:
    left = f"{now.seconds_left / 3600:.1f} h left"
    line = f"step {now.step}/{steps}, loss {now.loss:.3f}, right {now.accuracy:.1%}, {left}"
    return line + "".join(f", {task} {share:.0%}" for task, share in (now.solved or {}).items())

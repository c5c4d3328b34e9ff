"""One call of `train-softmask`: settings, answers, progress, the end of the run."""

from dataclasses import asdict

import torch
import typer

from xpredflow.cli.alignment import Request, loader, origin_of
from xpredflow.errors import InputError
from xpredflow.models import embedded
from xpredflow.processes import Share, join_processes
from xpredflow.settings import configured
from xpredflow.training.common.answers import read_answers
from xpredflow.training.common.plots import plot_losses
from xpredflow.training.common.runs import Run
from xpredflow.training.softmask import SoftMaskConfig, SoftMaskTraining


def run(request: Request) -> None:
    """Train to the end, a line per update."""
    if request.threads is not None:
        torch.set_num_threads(request.threads)
    torch.set_flush_denormal(True)  # decayed moments turn denormal, which CPUs handle very slowly
    config = configured(SoftMaskConfig, request.values, "train-softmask")
    (file,) = request.answers
    answers = read_answers(file)
    if join_processes().world > 1:
        raise InputError("train-softmask runs in one process: start it without torchrun")
    source = {"source": embedded.PRETRAINED, **request.source}
    about = {**asdict(config), **origin_of(source, request.answers)}
    directory = Run(request.out, about, request.resume, ("save_every", "answers"))
    training = SoftMaskTraining(loader(source, Share()), answers, config, directory)
    try:
        for now in training:
            typer.echo(
                f"step {now.step}/{config.updates}, loss {now.loss:.3f}"
                f" ({'soft' if now.soft else 'plain'} masks), ω_s {now.omega_s:.3f}",
                err=True,
            )
    except KeyboardInterrupt:
        typer.echo(f"stopped at step {training.step}; go on with --resume", err=True)
        raise typer.Exit(130) from None
    after, before = training.finish(request.out / "model"), training.before
    for name in before:
        typer.echo(f"loss with {name} masks: {before[name]:.4f} before, {after[name]:.4f} after")
    typer.echo(f"checkpoint: {request.out / 'model'}")
    if plot_losses(request.out / "log.jsonl", request.out / "loss.png"):
        typer.echo(f"plot: {request.out / 'loss.png'}")

"""One call of `align`: settings, answers, progress, the end of the run."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import typer

from xpredflow.cli.running import load_model
from xpredflow.models import MaskedDiffusionModel, embedded
from xpredflow.processes import Share, join_processes, leave_processes
from xpredflow.settings import configured
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.consistency import Consistency
from xpredflow.training.align.run import Alignment, Progress, Start
from xpredflow.training.common.answers import read_answers
from xpredflow.training.common.plots import plot_alignment


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    out: Path
    source: dict[str, Any]
    answers: list[Path]
    values: dict[str, Any]
    resume: bool
    threads: int | None


def run(request: Request) -> None:
    """Align to the end, a line per update."""
    if request.threads is not None:
        torch.set_num_threads(request.threads)
    torch.set_flush_denormal(True)  # decayed moments turn denormal, which CPUs handle very slowly
    config = configured(AlignConfig, request.values, "align")
    answers = [answer for file in request.answers for answer in read_answers(file)]
    share = join_processes()
    source = {"source": embedded.PRETRAINED, **request.source, **_own_device(request.source, share)}
    start = Start(loader(source, share), answers, origin_of(source, request.answers))
    training = Alignment(start, config, request.out, request.resume, share)
    speak = typer.echo if share.rank == 0 else lambda *_, **__: None
    speak(f"before: {_described(training.before)}")
    try:
        for now in training:
            speak(_line(now, config.updates), err=True)
            if now.warning:
                speak(f"warning: {now.warning}", err=True)
    except KeyboardInterrupt:
        speak(f"stopped at step {training.step}; go on with --resume", err=True)
        raise typer.Exit(130) from None
    after = training.finish(request.out / "model")
    if after is not None:
        _end(after, request.out)
    leave_processes()


def origin_of(source: dict[str, Any], answers: list[Path]) -> dict[str, str]:
    """What a run starts from; it is resumed with the same model and answers only."""
    content = b"".join(file.read_bytes() for file in answers)
    return {
        "model": str(source["source"]),
        "answers": ", ".join(map(str, answers)),
        "answers_sha256": hashlib.sha256(content).hexdigest(),
    }


def _own_device(source: dict[str, Any], share: Share) -> dict[str, str]:
    """Each process of a machine takes the accelerator of its number there."""
    kind = str(source.get("device", "cpu"))
    if share.world == 1 or kind == "cpu" or ":" in kind:
        return {}
    number = int(os.environ.get("LOCAL_RANK", "0"))
    torch.get_device_module(kind).set_device(number)
    return {"device": f"{kind}:{number}"}


def loader(source: dict[str, Any], share: Share) -> Callable[[], MaskedDiffusionModel]:
    """Loads the model again and again; one of the processes says so."""

    def load() -> MaskedDiffusionModel:
        model = embedded.load(**source) if share.rank else load_model(source)
        assert isinstance(model, MaskedDiffusionModel)
        return model

    return load


def _line(now: Progress, steps: int) -> str:
    def shown(value: float | None) -> str:
        return "–" if value is None else f"{value:.3g}"

    line = f"step {now.step}/{steps}, mse masked {shown(now.mse_masked)}"
    line += f", unmasked {shown(now.mse_unmasked)}"
    if now.mse_on_policy is not None:
        line += f", on_policy {shown(now.mse_on_policy)}"
    line += f", ce masked {shown(now.ce_masked)}"
    return line + f" (reference {shown(now.reference_ce_masked)})"


def _described(found: Consistency) -> str:
    line = f"{found.agreement:.2%} of clean tokens kept, readout {found.distance:.2%} away"
    if found.text_agreement is None or found.text_distance is None:
        return line
    return f"{line}; in the text {found.text_agreement:.2%} and {found.text_distance:.2%}"


def _end(after: Consistency, out: Path) -> None:
    typer.echo(f"after:  {_described(after)}")
    typer.echo(f"checkpoint: {out / 'model'}")
    if plot_alignment(out / "log.jsonl", out / "losses.png"):
        typer.echo(f"plot: {out / 'losses.png'}")

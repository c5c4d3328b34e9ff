"""One call of `self-generate`: load, decode, judge, keep."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch.distributed as dist
import typer

from xpredflow.cli.progress import CountBar
from xpredflow.cli.running import load_model
from xpredflow.models import embedded
from xpredflow.processes import Share, join_processes, leave_processes
from xpredflow.sandbox import Sandbox
from xpredflow.training.common.answers import Answer
from xpredflow.training.prompt_sources import prompt_source
from xpredflow.training.self_generate import AnswerFile, AnswerSpec, self_generate


def run(source: dict[str, Any], request: dict[str, Any], out: Path, unsafe: bool) -> None:
    """Every prompt answered, by this process and its peers; rank 0 writes the file."""
    source = {"source": embedded.PRETRAINED, **source}
    spec = AnswerSpec(model=str(source["source"]), **request)
    prompts = prompt_source(spec.data)
    spec = spec.within(len(prompts))
    share = join_processes()
    file = AnswerFile(out, spec, share)
    model = load_model(source)
    if share.rank == 0:
        file.begin()
    sandbox = Sandbox(unsafe=unsafe) if prompts.runs_programs else nullcontext()
    with sandbox as box, _bar(file, share) as bar:
        runner = None if box is None else box.runner
        try:
            self_generate(model, prompts, file, share, runner, bar or (lambda answer: None))
        except KeyboardInterrupt:
            typer.echo(f"stopped with {len(file.done)} answers; the same command goes on", err=True)
            raise typer.Exit(130) from None
    if share.world > 1:
        dist.barrier()
    if share.rank == 0:
        _report(file.finish(), spec, out)
    leave_processes()


def _bar(file: AnswerFile, share: Share) -> Any:
    if not sys.stderr.isatty() or share.rank != 0:
        return nullcontext()
    left = max(file.spec.count - file.finished - len(file.done), 0)
    return CountBar("answers", left // share.world, lambda answer: bool(answer.solved))


def _report(kept: list[Answer], spec: AnswerSpec, out: Path) -> None:
    judged = [answer for answer in kept if answer.solved is not None]
    line = f"{out}: {len(kept)} answers to {spec.count} prompts"
    if judged and spec.keep == "all":
        line += f", {sum(bool(a.solved) for a in judged)} of them right"
    typer.echo(line)

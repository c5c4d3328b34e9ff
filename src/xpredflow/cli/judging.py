"""One call of `eval`: load, decode, judge, and a row per task."""

import json
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch.distributed as dist
import typer

from xpredflow.cli.progress import CountBar
from xpredflow.cli.running import load_model
from xpredflow.engine import loop as engine
from xpredflow.errors import InputError
from xpredflow.evaluation.run import Job, Sample, Summary, evaluate, summarise
from xpredflow.processes import join_processes, leave_processes
from xpredflow.sandbox import Sandbox
from xpredflow.tasks import BENCHMARKS, TASKS, Task, make_task
from xpredflow.types import Model


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    tasks: list[str]
    source: dict[str, Any]
    decoder: str | None
    options: dict[str, Any]
    split: str
    limit: int
    samples: int
    out: Path | None
    json: bool
    unsafe: bool
    data: dict[str, str]
    template: str | None


def run(request: Request) -> None:
    """Evaluate the tasks one after the other; rows appear as they are done."""
    if not request.tasks:
        raise InputError(f"no tasks were given: choose from {', '.join([*TASKS, *BENCHMARKS])}")
    tasks = [_task(name, request) for name in request.tasks]
    decoder = request.decoder or engine.DEFAULT_DECODER
    engine.resolve(decoder, request.options)  # misspelt options, before anything is loaded
    rank, world = join_processes()
    model = load_model(request.source)
    runs_programs = any(task.runs_programs for task in tasks)
    with Sandbox(unsafe=request.unsafe) if runs_programs else nullcontext() as box:
        for task in tasks:
            job = Job(
                task=task.name,
                split=request.split,
                decoder=decoder,
                options=request.options,
                limit=min(request.limit, task.size(request.split)),
                samples=request.samples,
                model=model.name,
                template=request.template,
            )
            started = time.monotonic()
            samples = _samples(model, task, job, box, request.out, (rank, world))
            if rank == 0:
                _print(summarise(samples, job), time.monotonic() - started, request.json)
    leave_processes()


def _task(name: str, request: Request) -> Task:
    """The task; a template is meant for the published ones among several."""
    template = request.template if name in BENCHMARKS else None
    return make_task(name, request.data.get(name), template)


def _samples(
    model: Model,
    task: Task,
    job: Job,
    box: Sandbox | None,
    out: Path | None,
    share: tuple[int, int],
) -> list[Sample]:
    rank, world = share
    file = None
    if out is not None:
        file = out / (f"{job.task}.jsonl" if world == 1 else f"{job.task}.{rank}.jsonl")
    bar = nullcontext()
    if sys.stderr.isatty() and rank == 0:
        total = len(range(rank, job.limit * job.samples, world))
        bar = CountBar(job.task, total, lambda sample: sample.passed)
    runner = None if box is None else box.runner
    with bar as watch:
        mine = evaluate(
            model,
            task,
            job,
            run=runner,
            out=file,
            share=share,
            watch=watch or (lambda sample: None),
        )
    parts: list[list[Sample]] = [mine]
    if world > 1:
        parts = [[] for _ in range(world)]
        dist.all_gather_object(parts, mine)
    return sorted((s for part in parts for s in part), key=lambda s: s.number)


def _print(row: Summary, seconds: float, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**asdict(row), "seconds": round(seconds, 2)}))
        return
    decoder = row.decoder if row.policy is None else f"{row.decoder} ({row.policy})"
    typer.echo(
        f"{row.task:<10} {decoder}, budget {row.budget}: {row.accuracy:.1%}"
        f" [{row.low:.1%}, {row.high:.1%}] of {row.n};"
        f" passes {row.passes_mean:.1f} (median {row.passes_median:g}, max {row.passes_max});"
        f" {row.tokens_per_forward:.2f} tokens per pass; {seconds:.0f} s"
    )
    if len(row.pass_at) > 1:
        typer.echo("           " + "  ".join(f"pass@{k} {v:.1%}" for k, v in row.pass_at.items()))

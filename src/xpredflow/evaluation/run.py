"""Accuracy and passes of a decoder on a task: one record per sample, resumable, then one summary.

Text in, text out is the boundary: a task gives prompts and judges texts, the engine turns one into
the other. Sample number i is row i of the engine, so it is the same in any process and any order.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, Unpack, runtime_checkable

from xpredflow.decoders import effective_settings
from xpredflow.engine.budget import resolve_budget
from xpredflow.engine.loop import decode_steps
from xpredflow.engine.request import DEFAULT_DECODER, DecodeOptions, resolve
from xpredflow.engine.steps import Decoded, Step
from xpredflow.errors import InputError
from xpredflow.evaluation.identity import identity, problems_digest
from xpredflow.evaluation.samples import Job, Records, Sample
from xpredflow.evaluation.statistics import Summary, summarise
from xpredflow.processes import Share, gathered
from xpredflow.sandbox import Sandbox
from xpredflow.tasks import make_task, prompt_of
from xpredflow.tasks.base import Problem, Runner, Task, Verdict
from xpredflow.tasks.generated.splits import HELD_OUT
from xpredflow.types import Decoder, Model


@runtime_checkable
class Watch(Protocol):
    """Sees an evaluation as it goes; derive from it and override what is of interest."""

    def begin(self, left: int, passes: int) -> None:
        """So many answers are to come, in so many forward passes each at most."""

    def step(self, step: Step) -> None:
        """One forward pass of a batch."""

    def sample(self, sample: Any) -> None:
        """One answer with its verdict; it is on disk."""


class _SampleWatch(Watch):
    """Hands samples on to a function."""

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self.tell = tell

    def sample(self, sample: Any) -> None:
        self.tell(sample)


Watcher = Watch | Callable[[Any], None] | None


def watching(watch: Watcher) -> Watch:
    """A Watch as it is; a function is called with every sample."""
    if isinstance(watch, Watch):
        return watch
    return _SampleWatch(watch or (lambda sample: None))


@dataclass(frozen=True)
class Evaluation:
    """The row of a table, and the samples behind it in the order of their numbers."""

    summary: Summary
    samples: list[Sample]


def evaluate(
    model: Model,
    task: Task | str,
    *,
    decoder: str | Decoder | None = None,
    split: str = "validation",
    limit: int | None = None,
    samples: int = 1,
    out: str | Path | None = None,
    watch: Watcher = None,
    run: Runner | None = None,
    unsafe: bool = False,
    template: str | None = None,
    share: Share | None = None,
    **options: Unpack[DecodeOptions],
) -> Evaluation:
    """Accuracy and forward passes of a decoder on a task.

        found = evaluate(load("tiny"), "minimath", decoder="threshold:0.9", limit=100)
        print(found.summary.accuracy, found.summary.passes_mean)

    `task` is a Task or what `make_task` takes: a name, `mine.jsonl`, `mine.py:MyTask`. `limit` is a
    number of problems; all of the split are used without it, 500 where it has no end. Samples are
    kept in the directory `out` and reused from there, so that a killed evaluation goes on.
    Programs run in a sandbox, or by `run`; `unsafe` runs them with your own rights where there is
    no sandbox. `watch` is called with every sample, or is a Watch. `options` are those of the
    engine and the decoder. Of several processes each has its `share` and all get the whole.
    """
    task = make_task(task, template=template) if isinstance(task, str) else task
    share = share or Share()
    job = Job(
        task=task.name,
        split=split,
        decoder=_name(decoder, model),
        options=dict(options),
        limit=problem_count(task, split, limit),
        samples=samples,
        model=model.name,
        template=template,
        data=getattr(task, "digest", ""),
    )
    # what is misspelt is found before anything runs; what the checkpoint says is in force too
    settings, built = resolve(decoder or job.decoder, _options(task, job), model)
    file = None
    if out is not None:
        problems = problems_digest(task, split, job.limit)
        job = replace(job, identity=identity(model, built, problems))
        ending = ".jsonl" if share.world == 1 else f".{share.rank}.jsonl"
        file = Path(out).expanduser() / f"{task.name}{ending}"
    opens = task.runs_programs and run is None
    with Sandbox(unsafe=unsafe) if opens else nullcontext() as box:
        runner = run if box is None else box.runner
        mine = evaluate_job(
            model, task, job, decoder=decoder, run=runner, out=file, share=share, watch=watch
        )
    found = sorted(gathered(share, mine), key=lambda sample: sample.number)
    row = summarise(
        found,
        job,
        positions=settings.gen_length,
        budget=settings.budget,
        rules=effective_settings(built),
    )
    return Evaluation(row, found)


def evaluate_job(
    model: Model,
    task: Task,
    job: Job,
    *,
    decoder: str | Decoder | None = None,
    run: Runner | None = None,
    out: Path | None = None,
    share: tuple[int, int] = (0, 1),
    watch: Watcher = None,
) -> list[Sample]:
    """Every sample of the job that falls to this process (`share` is its number and their count).

    `decoder` is the job's, where it is a built one. Answers are judged in threads while the next
    ones are decoded.
    """
    watched = watching(watch)
    records = Records(out, job)
    mine = range(share[0], job.limit * job.samples, share[1])
    todo = [number for number in mine if number not in records.done]
    problems = {n: task.problem(job.split, n // job.samples) for n in todo}
    options = _options(task, job)
    settings, _ = resolve(decoder or job.decoder, options, model)
    watched.begin(len(todo), resolve_budget(settings.budget, settings.gen_length))
    prompts = {number: prompt_of(problem) for number, problem in problems.items()}
    steps = decode_steps(model, prompts, decoder=decoder or job.decoder, **options)

    def judge(done: Decoded) -> Verdict:
        return task.score(problems[done.row], done.text, run)

    before = time.monotonic()
    for done, verdict in judged(seen(steps, watched), judge):
        now = time.monotonic()
        sample = _sample(problems[done.row], done, verdict, job, seconds=now - before)
        before = now
        records.add(sample)
        watched.sample(sample)
    return [records.done[number] for number in mine if number in records.done]


def problem_count(task: Task, split: str, limit: int | None = None) -> int:
    """How many problems of a split are used: all, or the first `limit`."""
    size = task.size(split)
    if size < 1:
        raise InputError(
            f"split {split!r} of task {task.name!r} has no problems: choose another split, such as"
            " train or test (all: every problem of a file of yours)"
        )
    if limit is None:
        return HELD_OUT if size == sys.maxsize else size
    return min(limit, size)


V = TypeVar("V")


def seen(steps: Iterable[Step], watch: Watch) -> Iterator[Step]:
    """The steps, each shown to whoever watches before it is judged."""
    for step in steps:
        watch.step(step)
        yield step


def judged(steps: Iterable[Step], judge: Callable[[Decoded], V]) -> Iterator[tuple[Decoded, V]]:
    """Every row that ends with its verdict: judged in threads while the next ones are decoded.

    When decoding is interrupted, the verdicts under way are handed out before the error.
    """
    waiting: list[tuple[Decoded, Future[V]]] = []

    def ready(block: bool) -> Iterator[tuple[Decoded, V]]:
        for pair in [p for p in waiting if block or p[1].done()]:
            waiting.remove(pair)
            yield pair[0], pair[1].result()

    with ThreadPoolExecutor(os.cpu_count()) as judges:
        try:
            for step in steps:
                waiting += [(done, judges.submit(judge, done)) for done in step.finished]
                yield from ready(block=False)
        except (Exception, KeyboardInterrupt):
            yield from ready(block=True)
            raise
        yield from ready(block=True)


def _sample(problem: Problem, done: Decoded, verdict: Verdict, job: Job, seconds: float) -> Sample:
    failed = f"decoding failed: {done.stop_reason}" if done.failed else verdict.reason
    return Sample(
        number=done.row,
        problem=problem.id,
        prompt=problem.prompt,
        answer=done.text,
        passed=verdict.passed and not done.failed,
        reason=failed,
        passes=done.passes,
        tokens=len(done.ids),
        seed=int(job.options.get("seed", 0)),
        read=done.positions_read,
        seconds=round(seconds, 4),
    )


def _name(decoder: str | Decoder | None, model: Model) -> str:
    """As it was named, or as the checkpoint names the one that it wants."""
    if decoder is None:
        return getattr(getattr(model, "defaults", None), "decoder", None) or DEFAULT_DECODER
    return decoder if isinstance(decoder, str) else type(decoder).__name__


def _options(task: Task, job: Job) -> dict[str, Any]:
    return {"gen_length": task.response_length, **job.options}

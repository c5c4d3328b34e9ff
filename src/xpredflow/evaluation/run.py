"""Accuracy and passes of a decoder on a task: one record per sample, resumable, then one summary.

Text in, text out is the boundary: a task gives prompts and judges texts, the engine turns one into
the other. Sample number i is row i of the engine, so it is the same in any process and any order.
"""

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeVar

from xpredflow.engine.budget import FULL
from xpredflow.engine.loop import stream
from xpredflow.engine.request import DEFAULT_DECODER
from xpredflow.engine.steps import Decoded, Step
from xpredflow.errors import InputError
from xpredflow.files import write_atomically
from xpredflow.tasks import prompt_of
from xpredflow.tasks.base import Problem, Runner, Task, Verdict
from xpredflow.tasks.generated.splits import HELD_OUT
from xpredflow.types import Model


@dataclass(frozen=True)
class Job:
    """What is evaluated; two jobs that are equal give the same samples."""

    task: str
    split: str = "test"
    decoder: str = DEFAULT_DECODER
    options: dict[str, Any] = field(default_factory=dict)
    limit: int = HELD_OUT
    samples: int = 1
    model: str = ""
    template: str | None = None

    def __post_init__(self) -> None:
        for name in ("limit", "samples"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: give a whole number ≥ 1")


@dataclass(frozen=True)
class Sample:
    """One answer and its verdict; `number` is problem × samples + draw."""

    number: int
    problem: str
    prompt: str
    answer: str
    passed: bool
    reason: str
    passes: int
    tokens: int
    seed: int


@dataclass(frozen=True)
class Summary:
    """One row of a table of results; `low` and `high` are a 95 % interval of the accuracy."""

    task: str
    decoder: str
    policy: str | None
    budget: str
    n: int
    accuracy: float
    low: float
    high: float
    passes_mean: float
    passes_median: float
    passes_max: int
    tokens_per_forward: float
    pass_at: dict[int, float]


def _same(line: str, header: str) -> bool:
    """Whether both name the same job, in whatever order its options were given."""
    try:
        return json.loads(line) == json.loads(header)
    except json.JSONDecodeError:
        return False


class Records:
    """Samples on disk, one JSON line each behind a line that says what they are samples of."""

    def __init__(self, path: Path | None, job: Job) -> None:
        self.path = path
        self.done: dict[int, Sample] = {}
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        header = json.dumps({"job": asdict(job)})
        lines = path.read_text().splitlines() if path.is_file() else []
        if lines and not _same(lines[0], header):
            raise InputError(
                f"{str(path)!r} holds samples of another evaluation ({lines[0][:120]}): choose"
                " another file, or repeat that evaluation's options to go on with it"
            )
        own = list(_readable(lines[1:]))
        # rewritten whole: a kill may have cut the last line short
        kept = [header, *(json.dumps(asdict(s)) for s in own)]
        write_atomically(path, "".join(line + "\n" for line in kept))
        for other in path.parent.glob(f"{path.name.split('.')[0]}.*jsonl"):
            # what another number of processes did before, each in a file of its own
            theirs = other.read_text().splitlines()
            if theirs and theirs[0] == header:
                self.done |= {s.number: s for s in _readable(theirs[1:])}

    def add(self, sample: Sample) -> None:
        """Keep a sample; on disk before it counts as done."""
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(asdict(sample)) + "\n")
        self.done[sample.number] = sample


def _readable(lines: list[str]) -> Iterator[Sample]:
    for line in lines:
        try:
            yield Sample(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            continue


def evaluate(
    model: Model,
    task: Task,
    job: Job,
    *,
    run: Runner | None = None,
    out: Path | None = None,
    share: tuple[int, int] = (0, 1),
    watch: Callable[[Sample], None] = lambda sample: None,
) -> list[Sample]:
    """Every sample of the job that falls to this process (`share` is its number and their count).

    Answers are judged in threads while the next ones are decoded.
    """
    records = Records(out, job)
    mine = range(share[0], job.limit * job.samples, share[1])
    todo = [number for number in mine if number not in records.done]
    problems = {n: task.problem(job.split, n // job.samples) for n in todo}
    options = {"gen_length": task.response_length, **job.options}
    prompts = {number: prompt_of(problem) for number, problem in problems.items()}
    steps = stream(model, prompts, decoder=job.decoder, **options)

    def judge(done: Decoded) -> Verdict:
        return task.score(problems[done.row], done.text, run)

    for done, verdict in judged(steps, judge):
        sample = _sample(problems[done.row], done, verdict, job)
        records.add(sample)
        watch(sample)
    return [records.done[number] for number in mine if number in records.done]


V = TypeVar("V")


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


def _sample(problem: Problem, done: Decoded, verdict: Verdict, job: Job) -> Sample:
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
    )


def summarise(samples: list[Sample], job: Job) -> Summary:
    """The job's row of a table."""
    right_of: dict[int, int] = {}
    for sample in samples:
        problem = sample.number // job.samples
        right_of[problem] = right_of.get(problem, 0) + sample.passed
    right = sum(sample.passed for sample in samples)
    used = [sample.passes for sample in samples]
    low, high = wilson(right, len(samples))
    return Summary(
        task=job.task,
        decoder=job.decoder,
        policy=job.options.get("policy"),
        budget=str(job.options.get("budget") or FULL),
        n=len(samples),
        accuracy=right / len(samples),
        low=low,
        high=high,
        passes_mean=fmean(used),
        passes_median=float(median(used)),
        passes_max=max(used),
        tokens_per_forward=sum(s.tokens for s in samples) / sum(used),
        pass_at={
            k: fmean(pass_at_k(job.samples, c, k) for c in right_of.values())
            for k in (1, 2, 5, 10, 20, 50, 100)
            if k <= job.samples
        },
    )


def wilson(right: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: honest near 0 and 1, where the usual one is not."""
    p = right / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half))


def pass_at_k(n: int, right: int, k: int) -> float:
    """The chance that k of n samples, drawn without replacement, hold a right one (unbiased)."""
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)

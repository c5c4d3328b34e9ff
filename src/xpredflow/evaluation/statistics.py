"""From samples to figures: accuracy and its interval, passes, pass@k, and paired comparisons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, NamedTuple

from xpredflow.engine.budget import FULL, Budget, describe_budget
from xpredflow.errors import InputError
from xpredflow.evaluation.samples import Job, Sample

PASS_AT = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Summary:
    """One row of a table of results; `low` and `high` are a 95 % interval of the accuracy.

    `budget` says the cap as a share and in passes; `rules` are the decoder's settings in force.
    `read_mean` positions were predicted and `seconds_mean` passed per answer, others being decoded
    beside it: both are 0 in samples of a version that did not count them.
    """

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
    rules: dict[str, Any] = field(default_factory=dict)
    read_mean: float = 0.0
    seconds_mean: float = field(default=0.0, compare=False)


def summarise(
    samples: Sequence[Sample],
    job: Job,
    *,
    positions: int | None = None,
    budget: Budget = None,
    rules: dict[str, Any] | None = None,
) -> Summary:
    """The job's row of a table; `positions` of a response say what the budget is in passes.

    `budget` is the one in force where the job does not name it: a checkpoint's own.
    """
    right_of: dict[int, int] = {}
    for sample in samples:
        problem = sample.number // job.samples
        right_of[problem] = right_of.get(problem, 0) + sample.passed
    right = sum(sample.passed for sample in samples)
    used = [sample.passes for sample in samples]
    low, high = wilson(right, len(samples))
    budget = budget or job.options.get("budget", job.options.get("steps"))
    policy = (rules or {}).get("policy", job.options.get("policy"))
    return Summary(
        task=job.task,
        decoder=job.decoder,
        policy=policy if policy is None else str(policy),
        budget=str(budget or FULL) if positions is None else describe_budget(budget, positions),
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
            for k in PASS_AT
            if k <= job.samples
        },
        rules=rules or {},
        read_mean=fmean(sample.read for sample in samples),
        seconds_mean=fmean(sample.seconds for sample in samples),
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


class Paired(NamedTuple):
    """On how many problems only one of two is right, and how likely that split is by chance."""

    only_first: int
    only_second: int
    p: float


def mcnemar(first: Sequence[Sample], second: Sequence[Sample]) -> Paired:
    """McNemar's exact test of two evaluations on the same problems, paired by sample number.

    Samples on which both are right, or both wrong, say nothing; the others are a fair coin if the
    two are equally good, and `p` is the two-sided binomial test of that.
    """
    theirs = {sample.number: sample for sample in second}
    if len(first) != len(theirs) or any(
        s.number not in theirs or s.problem != theirs[s.number].problem for s in first
    ):
        raise InputError(
            f"{len(first)} and {len(second)} samples are not of the same problems: evaluate both"
            " with the same task, split, limit and samples"
        )
    pairs = [(s.passed, theirs[s.number].passed) for s in first]
    only_first, only_second = pairs.count((True, False)), pairs.count((False, True))
    n = only_first + only_second
    tail = sum(math.comb(n, i) for i in range(min(only_first, only_second) + 1))
    return Paired(only_first, only_second, min(1.0, 2 * tail / 2**n))


def holm(ps: Sequence[float]) -> list[float]:
    """p-values of several tests corrected by Holm's method, in their order.

    Whoever calls those below 5 % significant is wrong about any of them in at most 5 % of cases.
    """
    corrected, floor = list(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        floor = max(floor, min(1.0, (len(ps) - rank) * ps[i]))
        corrected[i] = floor
    return corrected

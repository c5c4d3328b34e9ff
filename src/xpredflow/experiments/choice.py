"""Settings chosen on some problems, to be shown once on others: the best within each target.

Every decoder brings the same number of settings. A target is a mean number of passes; the chosen
setting is the most accurate of those that stay within it, and of equals the one with fewer passes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from xpredflow.engine.budget import FULL, resolve_budget
from xpredflow.errors import InputError
from xpredflow.evaluation import Job, Paired, Sample, mcnemar, summarise
from xpredflow.evaluation.statistics import holm
from xpredflow.experiments.bench import Measured, Trial
from xpredflow.experiments.contenders import Contender, Variant, contenders

TARGETS = ("1/16", "1/12", "1/8", "1/4")


@dataclass(frozen=True)
class Candidate:
    """One setting of a decoder on some weights, and what it reached on a task."""

    task: str
    decoder: str
    weights: str
    variant: Variant
    found: Measured


@dataclass(frozen=True)
class Chosen:
    """The setting that a decoder may use at a target; none where it has none that is so fast."""

    task: str
    target: int | float  # passes on average
    decoder: str
    candidate: Candidate | None

    @property
    def weights(self) -> str:
        """The weights on which that was."""
        return "" if self.candidate is None else self.candidate.weights

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for the same setting, which may be the best at several targets."""
        return self.task, self.weights, repr(self.trial)

    @property
    def trial(self) -> Trial:
        """How to decode it again."""
        assert self.candidate is not None
        return self.candidate.variant.trial


class Against(NamedTuple):
    """A chosen setting beside the reference's: problems that one alone solves, and p by chance."""

    only_this: int
    only_reference: int
    p: float
    corrected: float  # by Holm, over all tests of the report


def equal_field(
    decoders: Iterable[str], sweeps: Iterable[str], budgets: Iterable[str | int]
) -> list[Contender]:
    """Every decoder under every cap, each with as many settings as any other."""
    field = contenders(decoders, sweeps, budgets, capped_sweeps=True)
    counts = {contender.spec: len(contender.variants) for contender in field}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{spec} has {count}" for spec, count in counts.items())
        raise InputError(
            f"the decoders have different numbers of settings ({told}): give each as many, as"
            " values of a sweep times -b (a sweep of budgets, mask+budget=4,8,16, counts its own)"
        )
    return field


def targets_in_passes(targets: Iterable[str | int | float], positions: int) -> list[int | float]:
    """The targets for responses of so many positions, the smallest first.

    A target is a mean, so that it may be 4.5 passes, where a budget is a whole number or a share.
    """
    passes = sorted({_in_passes(target, positions) for target in targets})
    if not passes:
        raise InputError("no targets were given: such as --at 4 or --at 1/8")
    return passes


def _in_passes(target: str | int | float, positions: int) -> int | float:
    decimal = re.fullmatch(r"[0-9]{1,6}\.[0-9]{1,6}", str(target).strip())
    if decimal and float(decimal[0]) > 1:
        return float(decimal[0])
    return resolve_budget(str(target), positions)


def choose(candidates: Sequence[Candidate], targets: Sequence[int | float]) -> list[Chosen]:
    """For each target and each decoder of one task, the best of its settings on any weights."""
    return [
        Chosen(candidates[0].task, target, decoder, _best(own, target))
        for target in targets
        for decoder, own in _by_decoder(candidates).items()
    ]


def _best(candidates: list[Candidate], target: int | float) -> Candidate | None:
    within = [one for one in candidates if one.found.summary.passes_mean <= target]
    # the first of equals: the weights that were given first, the settings in their order
    return max(within, key=_merit, default=None)


def _merit(candidate: Candidate) -> tuple[float, float]:
    summary = candidate.found.summary
    return summary.accuracy, -summary.passes_mean


def _by_decoder(candidates: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    found: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(candidate.decoder, []).append(candidate)
    return found


def pooled(parts: Sequence[Measured]) -> Measured:
    """What one setting reached on several lists of problems, as if they were one."""
    first = parts[0]
    samples: list[Sample] = []
    for part in parts:
        begin = len(samples)
        samples += [replace(sample, number=begin + i) for i, sample in enumerate(part.samples)]
    summary = first.summary
    job = Job(summary.task, decoder=summary.decoder, limit=len(samples))
    row = summarise(samples, job, rules=summary.rules)
    row = replace(row, policy=summary.policy, budget=summary.budget)
    return replace(first, summary=row, samples=tuple(samples))


def paired(shown: Sequence[tuple[Chosen, Measured]], reference: str) -> list[Against | None]:
    """Every choice beside the reference's at the same task and target; None for itself.

    Two settings that meet at several targets are one test.
    """
    of_reference = {(c.task, c.target): (c, m) for c, m in shown if c.decoder == reference}
    pairs: list[tuple | None] = []
    tests: dict[tuple, Paired] = {}
    for choice, found in shown:
        other = of_reference.get((choice.task, choice.target))
        pair = None
        if other is not None and choice.decoder != reference:
            pair = (choice.key, other[0].key)
            tests.setdefault(pair, mcnemar(found.samples, other[1].samples))
        pairs.append(pair)
    corrected = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    return [None if pair is None else Against(*tests[pair], corrected[pair]) for pair in pairs]


def setting_of(variant: Variant) -> str:
    """A setting as tables write it: the value of its sweep and its cap."""
    budget = variant.trial.options.get("budget", FULL)
    return variant.setting or f"budget {budget}"

"""One number for a curve of accuracy over forward passes, and which points nothing beats."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xpredflow.evaluation.run import Summary
from xpredflow.experiments.bench import Measured, Trial

LEAST = 1 / 20  # the smallest share of the full budget that counts


@dataclass(frozen=True)
class Point:
    """One setting of a decoder on a task; `share` of the full budget is what it used on average.

    `setting` is the value of a sweep, nothing where the decoder is run under several budgets.
    """

    task: str
    decoder: str
    setting: str
    share: float
    found: Measured
    trial: Trial | None = None  # how to decode it again

    @property
    def summary(self) -> Summary:
        """The figures alone."""
        return self.found.summary

    @property
    def place(self) -> tuple[float, float]:
        """Where it stands in the plane of passes and accuracy."""
        return self.share, self.summary.accuracy


def area(points: Iterable[tuple[float, float]], least: float = LEAST) -> float:
    """The area under the accuracy–parallelism curve, between 0 and 1.

    `points` are (share of the full budget used, accuracy). At each share s from `least` to 1 the
    curve is the best accuracy among the points with at most that share, 0 where there is none; it
    is averaged over log s, so that every halving of the passes counts the same.
    """
    begin = math.log(least)
    total, best, reached = 0.0, 0.0, begin
    for share, accuracy in sorted(points):
        if share > 1:
            break
        at = max(math.log(share), begin)
        total += best * (at - reached)
        best, reached = max(best, accuracy), at
    return (total - best * reached) / -begin


def unbeaten(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Which points no other matches with fewer passes or beats with as many: the Pareto front."""

    def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
        return one != other and one[0] <= other[0] and one[1] >= other[1]

    return [not any(beats(other, point) for other in points) for point in points]


def staircase(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a curve that improve on all with fewer passes."""
    steps: list[tuple[float, float]] = []
    for share, accuracy in sorted(points, key=lambda p: (p[0], -p[1])):
        if not steps or accuracy > steps[-1][1]:
            steps.append((share, accuracy))
    return steps

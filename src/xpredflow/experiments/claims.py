"""What the paper claims, as predicates on our figures; each has a sentence for either outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from xpredflow.evaluation import Summary

T = TypeVar("T")
Column = dict[str, Summary]  # the methods of a table on one model and task, by their keys


class Outcome(NamedTuple):
    """Whether a claim holds on one of our models, in a sentence with the figures."""

    where: str
    holds: bool
    sentence: str


@dataclass(frozen=True)
class Claim(Generic[T]):
    """`test` decides between the sentences; `figures` says what it was decided by."""

    test: Callable[[T], bool]
    holds: str
    fails: str
    figures: Callable[[T], str]

    def judge(self, where: str, found: T) -> Outcome:
        """The claim on what was found on one of our models."""
        holds = self.test(found)
        sentence = f"{self.holds if holds else self.fails} ({self.figures(found)})"
        return Outcome(where, holds, sentence)


def more_accurate(one: str, other: str, holds: str, fails: str) -> Claim[Column]:
    """Method `one` solves more than `other`; says where the intervals leave that open."""

    def figures(found: Column) -> str:
        a, b = found[one], found[other]
        open_ = "; the intervals overlap" if a.low <= b.high and b.low <= a.high else ""
        return f"{a.accuracy:.1%} against {b.accuracy:.1%}{open_}"

    return Claim(lambda f: f[one].accuracy > f[other].accuracy, holds, fails, figures)


def fewer_passes(one: str, other: str, holds: str, fails: str) -> Claim[Column]:
    """Method `one` takes fewer passes on average than `other`."""

    def figures(found: Column) -> str:
        return f"{found[one].passes_mean:.1f} against {found[other].passes_mean:.1f} passes"

    return Claim(lambda f: f[one].passes_mean < f[other].passes_mean, holds, fails, figures)


def accuracies(*keys: str) -> Callable[[Column], str]:
    """The accuracies of some methods, in a row."""
    return lambda found: ", ".join(f"{found[key].accuracy:.1%}" for key in keys)


def passes(*keys: str) -> Callable[[Column], str]:
    """The mean passes of some methods, in a row."""
    return lambda found: ", ".join(f"{found[key].passes_mean:.1f}" for key in keys) + " passes"

"""What the paper claims, as values: a test on our figures and a sentence for either outcome."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Literal, NamedTuple, TypeVar

from xpredflow.evaluation import Summary

T = TypeVar("T")
Column = dict[str, Summary]  # the methods of a table on one model and task, by their keys
Measure = Literal["accuracy", "passes_mean"]


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


def larger_lead(one: str, other: str, than: str, holds: str, fails: str) -> Claim[Column]:
    """Method `one` leads `other` by more than it leads `than`."""

    def leads(found: Column) -> tuple[float, float]:
        own = found[one].accuracy
        return own - found[other].accuracy, own - found[than].accuracy

    return Claim(
        lambda f: leads(f)[0] > leads(f)[1],
        holds,
        fails,
        lambda f: "{:+.1%} against {:+.1%}".format(*leads(f)),
    )


def highest(
    measure: Measure, one: str, others: Sequence[str], holds: str, fails: str, ties: bool = False
) -> Claim[Column]:
    """Method `one` is above all others in a measure, or level with them where `ties` count."""

    def test(found: Column) -> bool:
        own = getattr(found[one], measure)
        rest = max(getattr(found[key], measure) for key in others)
        return own >= rest if ties else own > rest

    return Claim(test, holds, fails, _in_a_row(measure, (one, *others)))


def lowest(
    measure: Measure, one: str, others: Sequence[str], holds: str, fails: str
) -> Claim[Column]:
    """Method `one` is below all others in a measure."""

    def test(found: Column) -> bool:
        return getattr(found[one], measure) < min(getattr(found[key], measure) for key in others)

    return Claim(test, holds, fails, _in_a_row(measure, (one, *others)))


def rising(measure: Measure, keys: Sequence[str], holds: str, fails: str) -> Claim[Column]:
    """A measure never falls from one method to the next and is higher at the end."""

    def test(found: Column) -> bool:
        values = [getattr(found[key], measure) for key in keys]
        return values[0] < values[-1] and all(a <= b for a, b in pairwise(values))

    return Claim(test, holds, fails, _in_a_row(measure, keys))


def higher_pass_at(
    one: tuple[str, int], other: tuple[str, int], holds: str, fails: str
) -> Claim[Column]:
    """pass@k of one method above that of another; each is named with its k."""

    def both(found: Column) -> tuple[float, float]:
        return pass_at(found[one[0]], one[1]), pass_at(found[other[0]], other[1])

    return Claim(
        lambda f: both(f)[0] > both(f)[1],
        holds,
        fails,
        lambda f: "{:.1%} against {:.1%}".format(*both(f)),
    )


def pass_at(found: Summary, k: int) -> float:
    """pass@k; that of a single deterministic draw is the accuracy, whatever k is."""
    return found.pass_at[k] if found.pass_at.keys() != {1} else found.accuracy


def _in_a_row(measure: Measure, keys: Sequence[str]) -> Callable[[Column], str]:
    """The figures of some methods, the one in question first."""
    if measure == "accuracy":
        return lambda found: ", ".join(f"{found[key].accuracy:.1%}" for key in keys)
    return lambda found: ", ".join(f"{found[key].passes_mean:.1f}" for key in keys) + " passes"

"""Writes one of the worked answers to a minimath story: one operation per equation."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from xpredflow.tasks.generated.minimath.story import Story

LETTERS = ("x", "n", "a", "m")
PRODUCT_LETTERS = ("p", "q", "r")
MARKS = (":", ",", ";")  # after a name, or at the end of a line
OPENINGS, JOINTS = ("First", "Start"), ("then", "next", "so")
PRODUCT, FINAL = -1, -2  # what an equation is about, if not about the holder of an index


@dataclass(frozen=True)
class Equation:
    """`left = right`, about a holder (by index), a product, or the final result."""

    about: int
    left: str
    right: int


def work(story: Story, style: str, rng: Random) -> str:
    """The equations in the style asked for, and the answer."""
    equations = _equations(story, rng)
    lines = STYLES[style](story, equations, rng)
    return "\n".join([*lines, f"#### {story.answer}"])


def _equations(story: Story, rng: Random) -> list[Equation]:
    """An equation per event, and one before it where a product is needed.

    Each sum and product may stand either way round. Holders and events keep their order: where
    it was free, a model of this size lost track of what it had already used.
    """
    equations: list[Equation] = []
    for index, holder in enumerate(story.holders):
        value = holder.start
        for event in holder.events:
            if event.groups:
                left = expression(event.groups, "*", event.amount, rng)
                equations.append(Equation(PRODUCT, left, event.operand))
            after = event.apply(value)
            left = expression(value, event.sign, event.operand, rng)
            equations.append(Equation(index, left, after))
            value = after
    return [*equations, *_final(story, rng)]


def _final(story: Story, rng: Random) -> list[Equation]:
    ends = [holder.end for holder in story.holders]
    if story.question == "together":
        return [Equation(FINAL, expression(ends[0], "+", ends[1], rng), story.answer)]
    if story.question == "difference":
        return [Equation(FINAL, f"{max(ends)}-{min(ends)}", story.answer)]
    return []


def expression(a: int, sign: str, b: int, rng: Random) -> str:
    """An operation on two numbers; sums and products may stand either way round."""
    swapped = sign in "+*" and rng.random() < 0.5
    return f"{b}{sign}{a}" if swapped else f"{a}{sign}{b}"


def letters(story: Story, equations: list[Equation], rng: Random) -> list[str]:
    """A letter for each running amount, introduced with its start and used to the end."""
    names: dict[int, str] = dict(zip((0, 1, FINAL), rng.sample(LETTERS, 3), strict=True))
    products = iter(rng.sample(PRODUCT_LETTERS, len(PRODUCT_LETTERS)))
    lines, met = [], set()
    for equation in equations:
        about = equation.about
        if about >= 0 and about not in met:
            met.add(about)
            lines.append(f"{names[about]}={story.holders[about].start}")
        name = next(products) if about == PRODUCT else names[about]
        lines.append(f"{name}={equation.left}={equation.right}")
    return lines


def people(story: Story, equations: list[Equation], rng: Random) -> list[str]:
    """The person's name before each amount, and the same mark after each name."""
    mark = rng.choice(MARKS)
    labels = {PRODUCT: "Group", FINAL: "Both" if story.question == "together" else "More"}
    labels |= {index: holder.name for index, holder in enumerate(story.holders)}
    return [f"{labels[eq.about]}{mark} {eq.left}={eq.right}" for eq in equations]


def units(story: Story, equations: list[Equation], rng: Random) -> list[str]:
    """The thing counted after each amount, and the same mark after each line."""
    mark = rng.choice(MARKS)
    return [f"{eq.left}={eq.right} {story.item}{mark}" for eq in equations]


def sentence(story: Story, equations: list[Equation], rng: Random) -> list[str]:
    """All equations in one sentence, joined by the same word."""
    opening, joint = rng.choice(OPENINGS), rng.choice(JOINTS)
    first, *rest = [f"{eq.left}={eq.right}" for eq in equations]
    return ["".join([f"{opening} {first}", *(f", {joint} {text}" for text in rest), "."])]


# What a problem asks for: it decides how long the answer is (see minicode/answers.py).
STYLES: dict[str, Callable[[Story, list[Equation], Random], list[str]]] = {
    "letters": letters,
    "names": people,
    "units": units,
    "one sentence": sentence,
}

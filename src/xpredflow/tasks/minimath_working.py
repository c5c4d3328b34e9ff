"""Writes one of the many worked answers to a minimath story: one operation per equation."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from random import Random

from xpredflow.tasks.minimath_story import LARGEST, Event, Holder, Story

LETTERS = ("x", "n", "a", "m")
PRODUCT_LETTERS = ("p", "q", "r")
PRODUCT, FINAL = -1, -2  # what an equation is about, if not about the holder of an index


@dataclass(frozen=True)
class Equation:
    """`left = right`, about a holder (by index), a product, or the final result."""

    about: int
    left: str
    right: int


def work(story: Story, rng: Random) -> str:
    """The equations in an order and a style drawn at random, and the answer."""
    equations = _equations(story, rng)
    lines = rng.choice(STYLES)(story, equations, rng)
    return "\n".join([*lines, f"#### {story.answer}"])


def _equations(story: Story, rng: Random) -> list[Equation]:
    """Products at once or where they are needed; either holder first; sums in either order."""
    products_first, swap = rng.random() < 0.5, rng.random() < 0.5
    products: list[Equation] = []
    running: list[Equation] = []
    indices = rng.sample(range(len(story.holders)), len(story.holders))
    for index in indices:
        holder = story.holders[index]
        value = holder.start
        for event in _reordered(holder, rng):
            if event.groups:
                left = _expression(event.groups, "*", event.amount, swap)
                into = products if products_first else running
                into.append(Equation(PRODUCT, left, event.operand))
            after = event.apply(value)
            running.append(
                Equation(index, _expression(value, event.sign, event.operand, swap), after)
            )
            value = after
    rng.shuffle(products)
    return [*products, *running, *_final(story, indices, swap)]


def _final(story: Story, indices: list[int], swap: bool) -> list[Equation]:
    ends = [story.holders[index].end for index in indices]
    if story.question == "together":
        return [Equation(FINAL, _expression(ends[0], "+", ends[1], swap), story.answer)]
    if story.question == "difference":
        return [Equation(FINAL, f"{max(ends)}-{min(ends)}", story.answer)]
    return []


def _expression(a: int, sign: str, b: int, swap: bool) -> str:
    return f"{b}{sign}{a}" if swap and sign in "+*" else f"{a}{sign}{b}"


def _reordered(holder: Holder, rng: Random) -> list[Event]:
    """The events with neighbouring gains and losses shuffled, if amounts stay in range."""
    events: list[Event] = []
    for movable, run in groupby(holder.events, key=lambda event: event.sign in "+-"):
        group = list(run)
        if movable:
            rng.shuffle(group)
        events += group
    value = holder.start
    for event in events:
        value = event.apply(value)
        if not 1 <= value <= LARGEST:
            return list(holder.events)
    return events


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
    """The person's name before each amount."""
    labels = {PRODUCT: "Group", FINAL: "Both" if story.question == "together" else "More"}
    labels |= {index: holder.name for index, holder in enumerate(story.holders)}
    return [f"{labels[eq.about]}: {eq.left}={eq.right}" for eq in equations]


def units(story: Story, equations: list[Equation], rng: Random) -> list[str]:
    """The thing counted after each amount."""
    return [f"{eq.left}={eq.right} {story.item}" for eq in equations]


def sentence(story: Story, equations: list[Equation], rng: Random) -> list[str]:
    """All equations in one sentence."""
    first, *rest = [f"{eq.left}={eq.right}" for eq in equations]
    return ["".join([f"First {first}", *(f", then {text}" for text in rest), "."])]


STYLES: tuple[Callable[[Story, list[Equation], Random], list[str]], ...] = (
    letters,
    people,
    units,
    sentence,
)

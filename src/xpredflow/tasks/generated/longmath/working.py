"""Writes one of the worked answers to a longmath story: one operation per equation."""

from collections.abc import Callable
from random import Random

from xpredflow.tasks.generated.longmath.story import FINAL, PRODUCT, Equation, Story
from xpredflow.tasks.generated.minimath.working import JOINTS, MARKS, OPENINGS

LETTERS = ("x", "n", "a", "m", "b", "c", "k", "y")
PRODUCT_LETTERS = ("p", "q", "r", "g", "h")


def work(story: Story, style: str, rng: Random) -> str:
    """The equations in the style asked for, and the answer."""
    lines = STYLES[style](story, rng)
    return "\n".join([*lines, f"#### {story.answer}"])


def _formula(equation: Equation) -> str:
    """The running amount stands first; minimath has sums either way round.

    Whose amount it is must be found out anew in each of up to eight equations, and a number that
    stands in either of two places says less about that.
    """
    return f"{equation.a}{equation.sign}{equation.b}={equation.value}"


def letters(story: Story, rng: Random) -> list[str]:
    """A letter for each person, introduced with the start and used to the end."""
    chosen = rng.sample(LETTERS, len(story.names) + 1)
    products = rng.sample(PRODUCT_LETTERS, len(PRODUCT_LETTERS))
    lines = [f"{chosen[who]}={start}" for who, start in story.starts.items()]
    for equation in story.equations():
        if equation.about == PRODUCT:
            letter = products.pop()
        else:
            letter = chosen[-1 if equation.about == FINAL else equation.about]
        lines.append(f"{letter}={_formula(equation)}")
    return lines


def people(story: Story, rng: Random) -> list[str]:
    """The person's name before each amount, and the same mark after each name."""
    mark = rng.choice(MARKS)
    labels = {PRODUCT: "Group", FINAL: "All" if story.question == "all" else "More"}
    labels |= dict(enumerate(story.names))
    return [f"{labels[e.about]}{mark} {_formula(e)}" for e in story.equations()]


def units(story: Story, rng: Random) -> list[str]:
    """The thing counted after each amount, and the same mark after each line."""
    mark = rng.choice(MARKS)
    return [f"{_formula(e)} {story.item}{mark}" for e in story.equations()]


def sentence(story: Story, rng: Random) -> list[str]:
    """All equations in one sentence, joined by the same word."""
    opening, joint = rng.choice(OPENINGS), rng.choice(JOINTS)
    first, *rest = [_formula(e) for e in story.equations()]
    return ["".join([f"{opening} {first}", *(f", {joint} {text}" for text in rest), "."])]


# What a problem asks for: it decides how long the answer is (see minicode/answers.py).
STYLES: dict[str, Callable[[Story, Random], list[str]]] = {
    "letters": letters,
    "names": people,
    "units": units,
    "one sentence": sentence,
}

"""An exercise for pretraining: a row of separate sums, in the way minimath writes its equations.

In a worked answer a result stands again in the next line, so masks that fall at random mostly ask
to copy it. Here no result is repeated and the sums themselves are given: every masked digit has to
be computed.
"""

from random import Random

from xpredflow.tasks.base import Problem
from xpredflow.tasks.generated.minimath.story import (
    AMOUNTS,
    LARGEST,
    LARGEST_FACTOR,
    LARGEST_SUM,
    SMALLEST,
)

SUMS = 7  # in one exercise


class Sums:
    """Not a task: nothing is held out, and nothing is evaluated on it."""

    name = "sums"

    def __init__(self, largest: int = LARGEST_SUM) -> None:
        """`largest` is the largest sum of two amounts."""
        self.largest = largest

    def problem(self, split: str, index: int) -> Problem:
        """The exercise at an index; its sums stand in the answer, not in the prompt."""
        rng = Random(f"{self.name}/{index}")
        return Problem(" ".join(_sum(rng, self.largest) for _ in range(SUMS)), "How many?", 1, {})

    def answer(self, problem: Problem, rng: Random) -> list[tuple[str, bool]]:
        """Every sum, which is given, and its result, which is not; one a line."""
        pieces = []
        for text in problem.id.split(" "):
            pieces += [(f"{text}=", False), (f"{result(text)}\n", True)]
        return pieces


def result(text: str) -> int:
    """What `a+b`, `a-b`, `a*b` or `a/b` is."""
    sign = next(c for c in text if not c.isdigit())
    a, b = (int(number) for number in text.split(sign))
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[sign]


def _sum(rng: Random, largest: int) -> str:
    """Of the sizes that minimath meets; results have two digits."""
    sort = rng.randrange(10)
    if sort == 0:
        groups = rng.randint(2, LARGEST_FACTOR)
        return _either(rng, groups, "*", rng.randint(-(-SMALLEST // groups), AMOUNTS[1]))
    if sort == 1:
        factor = rng.choice((2, 3))
        return _either(rng, rng.randint(SMALLEST, LARGEST // factor), "*", factor)
    if sort == 2:
        parts = rng.randint(2, LARGEST // SMALLEST)
        return f"{parts * rng.randint(SMALLEST, LARGEST // parts)}/{parts}"
    b = rng.randint(*rng.choice((AMOUNTS, (SMALLEST, LARGEST - SMALLEST))))
    if sort < 7:
        return _either(rng, rng.randint(SMALLEST, largest - b), "+", b)
    return f"{rng.randint(b + SMALLEST, LARGEST)}-{b}"


def _either(rng: Random, a: int, sign: str, b: int) -> str:
    return f"{a}{sign}{b}" if rng.random() < 0.5 else f"{b}{sign}{a}"

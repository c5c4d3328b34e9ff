"""An exercise for pretraining: a row of separate sums, in the way minimath writes its equations.

In a worked answer a result stands again in the next line, so masks that fall at random mostly ask
to copy it. Here no result is repeated and the sums themselves are given: every masked digit has to
be computed.
"""

from random import Random

from xpredflow.tasks.minimath_story import AMOUNTS, LARGEST, LARGEST_FACTOR, LARGEST_SUM
from xpredflow.tasks.splits import Problem

SUMS = 7  # in one exercise


class Sums:
    """Not a task: nothing is held out, and nothing is evaluated on it."""

    name = "sums"

    def problem(self, split: str, index: int) -> Problem:
        """The exercise at an index; its sums stand in the answer, not in the prompt."""
        rng = Random(f"{self.name}/{index}")
        return Problem(" ".join(_sum(rng) for _ in range(SUMS)), "How many?", 1, {})

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


def _sum(rng: Random) -> str:
    """Of the sizes that minimath meets."""
    sort = rng.randrange(10)
    if sort == 0:
        a, b = rng.randint(2, LARGEST_FACTOR), rng.randint(2, LARGEST_FACTOR)
        return f"{a}*{b}"
    if sort == 1:
        factor = rng.choice((2, 3))
        return f"{rng.randint(1, LARGEST // factor)}*{factor}"
    if sort == 2:
        parts = rng.randint(2, 5)
        return f"{parts * rng.randint(1, LARGEST // parts)}/{parts}"
    most = rng.choice((AMOUNTS[1], LARGEST_FACTOR**2, LARGEST))
    b = rng.randint(1, most)
    if sort < 7:
        a = rng.randint(1, LARGEST_SUM - b)
        return f"{a}+{b}" if rng.random() < 0.5 else f"{b}+{a}"
    return f"{rng.randint(b, LARGEST + 1)}-{b}"

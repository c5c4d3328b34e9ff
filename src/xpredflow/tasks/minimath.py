"""minimath: a short word problem, worked step by step, graded by the number after ####."""

import re
from random import Random

from xpredflow.tasks import minimath_story
from xpredflow.tasks.minimath_wording import tell
from xpredflow.tasks.minimath_working import MANNERS, work
from xpredflow.tasks.splits import (
    RESPONSE_LENGTH,
    Drawer,
    Problem,
    Runner,
    Verdict,
    generated_size,
)


class MiniMath:
    """Gains, losses, groups, multiples and equal parts of small whole numbers."""

    name = "minimath"
    response_length = RESPONSE_LENGTH
    runs_programs = False

    def __init__(self) -> None:
        self._draw = Drawer(self.name, minimath_story.draw)

    def problem(self, split: str, index: int) -> Problem:
        """The problem at an index: train is endless, validation and test have 500 each."""
        story, level, rng = self._draw(split, index)
        manner = rng.choice([*MANNERS])
        meta = {"answer": story.answer, "manner": manner}
        return Problem(story.id, tell(story, manner, rng), level, meta)

    def answer(self, problem: Problem, rng: Random) -> str:
        """One of the right worked answers in the manner asked for: letters and orders are free."""
        return work(minimath_story.parse(problem.id), problem.meta["manner"], rng)

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """Whether the integer after the last #### is the answer; nothing is run."""
        _, mark, tail = text.rpartition("####")
        if not mark:
            return Verdict(False, "no #### in the text")
        given = tail.split("\n", 1)[0].strip()
        if not re.fullmatch(r"-?[0-9]+", given):
            return Verdict(False, f"not an integer after ####: {given[:40]!r}")
        expected = problem.meta["answer"]
        # The length first: int() of thousands of digits would raise.
        passed = len(given) < 20 and int(given) == expected
        return Verdict(passed, "right" if passed else f"{given[:40]} instead of {expected}")

    def size(self, split: str) -> int:
        """How many problems a split has."""
        return generated_size(split)

    def count_problems(self) -> int:
        """A lower bound of the number of distinct problems."""
        return minimath_story.count_problems()

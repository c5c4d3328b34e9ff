"""longmath: a long word problem about several people; answer and working must both be right."""

import re
from dataclasses import replace
from random import Random

from xpredflow.tasks.base import Problem, Runner, Verdict
from xpredflow.tasks.generated import people
from xpredflow.tasks.generated.longmath import phrasing
from xpredflow.tasks.generated.longmath import story as longmath_story
from xpredflow.tasks.generated.longmath.wording import tell
from xpredflow.tasks.generated.longmath.working import STYLES, work
from xpredflow.tasks.generated.minimath.task import grade_worked
from xpredflow.tasks.generated.splits import (
    LONG_RESPONSE_LENGTH,
    Drawer,
    draw_digest,
    generated_size,
)

_ASSIGNMENT = re.compile(r"^([a-z])=([0-9]+)(?:[-+*/]([0-9]+))?(?:=([0-9]+))?$", re.MULTILINE)


def broken_letter(working: str) -> str | None:
    """The first line that gives a letter a value without going on from the one it had."""
    values: dict[str, str] = {}
    for found in _ASSIGNMENT.finditer(working):
        letter, a, b, result = found.groups()
        if letter in values and values[letter] not in (a, b):
            return found.group()
        values[letter] = result or a
    return None


class LongMath:
    """Two or three people who gain, lose, give to each other, and compare what they have."""

    name = "longmath"
    response_length = LONG_RESPONSE_LENGTH
    runs_programs = False

    def __init__(self, draw: int = 0) -> None:
        """`draw` other than 0: validation and test problems that were never published."""
        self._draw = Drawer(self.name, longmath_story.draw, number=draw)
        self.digest = draw_digest(draw)

    def problem(self, split: str, index: int) -> Problem:
        """The problem at an index: train is endless, validation and test have 500 each."""
        story, level, rng = self._draw(split, index)
        style = rng.choice([*STYLES])
        if split in people.SPLITS:
            reserved = split == "paraphrase"
            names, item = people.draw_cast(rng, len(story.names), reserved)
            story = replace(story, names=names, item=item)
            prompt = phrasing.tell(story, style, rng, reserved)
        else:
            prompt = tell(story, style, rng)
        return Problem(story.id, prompt, level, {"answer": story.answer, "style": style})

    def answer(self, problem: Problem, rng: Random) -> str:
        """One of the right worked answers in the style asked for: letters and sides are free."""
        return work(longmath_story.parse(problem.id), problem.meta["style"], rng)

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """Whether the integer after the last #### is the answer, every equation before it holds,
        and a letter that is used again goes on from what it was."""
        verdict = grade_worked(text, problem.meta["answer"])
        broken = broken_letter(text) if verdict.passed else None
        return Verdict(False, f"a letter for two things: {broken!r}") if broken else verdict

    def size(self, split: str) -> int:
        """How many problems a split has."""
        return generated_size(split)

    def count_problems(self) -> int:
        """A lower bound of the number of distinct problems."""
        return longmath_story.count_problems()

"""longmath: a long word problem about several people; answer and working must both be right."""

import re
from dataclasses import replace
from random import Random

from xpredflow.tasks.base import Problem, Runner, Verdict
from xpredflow.tasks.generated import people
from xpredflow.tasks.generated.longmath import phrasing
from xpredflow.tasks.generated.longmath.story import Story, count_problems, draw, parse
from xpredflow.tasks.generated.longmath.wording import tell
from xpredflow.tasks.generated.longmath.working import STYLES, work
from xpredflow.tasks.generated.splits import LONG_RESPONSE_LENGTH
from xpredflow.tasks.generated.word_problems import Stories, WordProblems

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


def recast(story: Story, rng: Random, reserved: bool) -> Story:
    """The same story of other people and other things."""
    names, item = people.draw_cast(rng, len(story.names), reserved)
    return replace(story, names=names, item=item)


class LongMath(WordProblems):
    """Two or three people who gain, lose, give to each other, and compare what they have."""

    name = "longmath"
    response_length = LONG_RESPONSE_LENGTH
    stories = Stories(draw, parse, recast, tell, phrasing.tell, work, tuple(STYLES), count_problems)

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """Whether the integer after the last #### is the answer, every equation before it holds,
        and a letter that is used again goes on from what it was."""
        verdict = super().score(problem, text)
        broken = broken_letter(text) if verdict.passed else None
        return Verdict(False, f"a letter for two things: {broken!r}") if broken else verdict

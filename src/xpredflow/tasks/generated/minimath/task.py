"""minimath: a short word problem, worked step by step; answer and working must both be right."""

from dataclasses import replace
from random import Random

from xpredflow.tasks.generated import people
from xpredflow.tasks.generated.minimath import phrasing
from xpredflow.tasks.generated.minimath.story import Story, count_problems, draw, parse
from xpredflow.tasks.generated.minimath.wording import tell
from xpredflow.tasks.generated.minimath.working import STYLES, work
from xpredflow.tasks.generated.splits import RESPONSE_LENGTH
from xpredflow.tasks.generated.word_problems import Stories, WordProblems


def recast(story: Story, rng: Random, reserved: bool) -> Story:
    """The same story of other people and other things."""
    names, item = people.draw_cast(rng, len(story.holders), reserved)
    pairs = zip(story.holders, names, strict=True)
    holders = tuple(replace(holder, name=name) for holder, name in pairs)
    return replace(story, item=item, holders=holders)


class MiniMath(WordProblems):
    """Gains, losses, groups, multiples and equal parts of small whole numbers."""

    name = "minimath"
    response_length = RESPONSE_LENGTH
    stories = Stories(draw, parse, recast, tell, phrasing.tell, work, tuple(STYLES), count_problems)

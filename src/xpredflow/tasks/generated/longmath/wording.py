"""Tells a longmath story in the grammar's own sentences, one a happening."""

from random import Random

from xpredflow.tasks.generated.longmath.story import Happening, Story
from xpredflow.tasks.generated.minimath.wording import CONTAINERS, GAINS, LOSSES, MULTIPLES

TIMES = {2: "twice", 3: "three times"}


def tell(story: Story, style: str, rng: Random) -> str:
    """The story, its question, and how to answer it."""
    sentences = [_sentence(story, h, rng) for h in story.happenings]
    return " ".join([*sentences, _question(story), f"Use {style}."])


def _sentence(story: Story, h: Happening, rng: Random) -> str:
    name, other = story.names[h.who], story.names[h.other]
    if h.sign == "=":
        return f"{name} has {h.amount} {story.item}."
    if h.sign in "mf":
        return f"{name} has {h.amount} {'more' if h.sign == 'm' else 'fewer'} than {other}."
    if h.sign == "t":
        return f"{name} has {TIMES[h.amount]} as many as {other}."
    if h.sign == ">":
        return f"{name} gives {h.amount} to {other}."
    if h.sign == "*":
        return f"{name} {MULTIPLES[h.amount]}."
    if h.sign == "/":
        return f"{name} keeps one of {h.amount} equal parts."
    verb = rng.choice(GAINS if h.sign == "+" else LOSSES)
    if h.groups:
        return f"{name} {verb} {h.groups} {rng.choice(CONTAINERS)} of {h.amount}."
    return f"{name} {verb} {h.amount}."


def _question(story: Story) -> str:
    if story.question == "all":
        return f"How many {story.item} do they have together?"
    more, less = (story.names[int(who)] for who in story.question.split("-"))
    return f"How many more does {more} have than {less}?"

"""Long word problems as people tell them; minimath's phrasing has what both share."""

from random import Random

from xpredflow.tasks.generated.longmath.story import Happening, Story
from xpredflow.tasks.generated.longmath.wording import TIMES
from xpredflow.tasks.generated.minimath.phrasing import (
    DIFFERENCE,
    HAS,
    TOGETHER,
    happening,
    told,
)
from xpredflow.tasks.generated.minimath.story import Event
from xpredflow.tasks.generated.people import Pool

MORE = Pool(
    (
        "{name} has {n} more than {other}",
        "{name} has {n} {item} more than {other}",
        "{name} owns {n} more than {other}",
    ),
    ("{name} starts with {n} more than {other}", "than {other}, {name} has {n} more"),
)
FEWER = Pool(
    (
        "{name} has {n} fewer than {other}",
        "{name} has {n} less than {other}",
        "{name} owns {n} fewer than {other}",
    ),
    ("{name} starts with {n} fewer than {other}", "than {other}, {name} has {n} fewer"),
)
TIMES_AS_MANY = Pool(
    (
        "{name} has {times} as many as {other}",
        "{name} has {times} as many {item} as {other}",
        "{name} owns {times} as many as {other}",
    ),
    ("{name} starts with {times} as many as {other}", "{name} has {times} what {other} has"),
)
GIVES = Pool(
    (
        "{name} gives {n} to {other}",
        "{name} gives {other} {n}",
        "{name} hands {n} to {other}",
        "{other} gets {n} from {name}",
    ),
    ("{name} gives {n} {item} to {other}", "{other} receives {n} from {name}"),
)
STARTS = {"=": HAS, "m": MORE, "f": FEWER, "t": TIMES_AS_MANY, ">": GIVES}
BEFORE = Pool(("", "", "", "Then ", "Now ", "Later "), ("", "After that ", "Next "))


def tell(story: Story, style: str, rng: Random, reserved: bool) -> str:
    """A story as a person may tell it."""
    sentences = [_sentence(story, h, rng, reserved) for h in story.happenings]
    return told(sentences, _question(story, rng, reserved), style, rng, reserved)


def _sentence(story: Story, h: Happening, rng: Random, reserved: bool) -> str:
    name, other = story.names[h.who], story.names[h.other]
    if h.sign in STARTS:
        text = STARTS[h.sign].draw(rng, reserved)
        times = TIMES.get(h.amount, "")
        text = text.format(name=name, other=other, n=h.amount, item=story.item, times=times)
    else:
        text = f"{name} {happening(Event(h.sign, h.amount, h.groups), rng)}"
    if h.sign not in "=mft":
        text = BEFORE.draw(rng, reserved) + text
    return f"{text[:1].upper()}{text[1:]}."


def _question(story: Story, rng: Random, reserved: bool) -> str:
    if story.question == "all":
        text = TOGETHER.draw(rng, reserved).format(item=story.item)
        return text.replace(" both ", " they ")  # there may be three
    more, less = (story.names[int(who)] for who in story.question.split("-"))
    return DIFFERENCE.draw(rng, reserved).format(item=story.item, more=more, less=less)

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
from xpredflow.tasks.generated.people import FILLERS, Pool

MORE = Pool(
    (
        "{name} has {n} more than {other}",
        "{name} has {n} {item} more than {other}",
        "{name} owns {n} more than {other}",
        "{name} had {n} more than {other}",
        "{name} has what {other} has and {n} more",
        "{name} got {n} more {item} than {other}",
        "there are {n} more with {name} than with {other}",
        "{name} holds {n} more than {other}",
        "compared with {other}, {name} has {n} more",
    ),
    ("{name} starts with {n} more than {other}", "than {other}, {name} has {n} more"),
)
FEWER = Pool(
    (
        "{name} has {n} fewer than {other}",
        "{name} has {n} less than {other}",
        "{name} owns {n} fewer than {other}",
        "{name} had {n} fewer than {other}",
        "{name} has what {other} has but {n} fewer",
        "{name} got {n} less {item} than {other}",
        "there are {n} fewer with {name} than with {other}",
        "{name} holds {n} less than {other}",
        "compared with {other}, {name} has {n} fewer",
    ),
    ("{name} starts with {n} fewer than {other}", "than {other}, {name} has {n} fewer"),
)
TIMES_AS_MANY = Pool(
    (
        "{name} has {times} as many as {other}",
        "{name} has {times} as many {item} as {other}",
        "{name} owns {times} as many as {other}",
        "{name} had {times} as many as {other}",
        "{name} got {times} as many {item} as {other}",
        "{name} holds {times} as many as {other}",
        "compared with {other}, {name} has {times} as many",
        "there are {times} as many with {name} as with {other}",
    ),
    ("{name} starts with {times} as many as {other}", "{name} has {times} what {other} has"),
)
GIVES = Pool(
    (
        "{name} gives {n} to {other}",
        "{name} gives {other} {n}",
        "{name} hands {n} to {other}",
        "{other} gets {n} from {name}",
        "{name} passes {n} to {other}",
        "{name} lets {other} have {n}",
        "{other} takes {n} from {name}",
        "{name} sends {other} {n}",
        "from {name}, {other} gets {n} {item}",
        "{n} go from {name} to {other}",
        "{name} hands {other} {n} {item}",
    ),
    ("{name} gives {n} {item} to {other}", "{other} receives {n} from {name}"),
)
STARTS = {"=": HAS, "m": MORE, "f": FEWER, "t": TIMES_AS_MANY, ">": GIVES}
BEFORE = Pool(
    (
        *("", "", "", "", "", "", "Then ", "Then ", "Now ", "Now ", "Later ", "Later "),
        *("Afterwards ", "Soon ", "And then ", "And ", "Also ", "Today ", "Again ", "But "),
    ),
    ("", "After that ", "Next "),
)


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
        text = _before(rng, reserved) + text
    return f"{text[:1].upper()}{text[1:]}."


def _before(rng: Random, reserved: bool) -> str:
    if reserved or rng.random() < 0.8:
        return BEFORE.draw(rng, reserved)
    return f"{rng.choice(FILLERS)} "


def _question(story: Story, rng: Random, reserved: bool) -> str:
    if story.question == "all":
        text = TOGETHER.draw(rng, reserved).format(item=story.item)
        return text.replace(" both ", " they ")  # there may be three
    more, less = (story.names[int(who)] for who in story.question.split("-"))
    return DIFFERENCE.draw(rng, reserved).format(item=story.item, more=more, less=less)

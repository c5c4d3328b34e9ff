"""Tells a minimath story in short sentences, from few templates."""

from random import Random

from xpredflow.tasks.generated.minimath.story import Event, Holder, Story

GAINS = ("buys", "finds")
LOSSES = ("loses", "gives away")
CONTAINERS = ("bags", "boxes")
MULTIPLES = {2: "doubles them", 3: "triples them"}


def tell(story: Story, style: str, rng: Random) -> str:
    """The story, its question, and how to answer it."""
    sentences = [_sentence(holder, story.item, rng) for holder in story.holders]
    return " ".join([*sentences, _question(story, rng), f"Use {style}."])


def _sentence(holder: Holder, item: str, rng: Random) -> str:
    parts = [f"has {holder.start} {item}", *(_happening(event, rng) for event in holder.events)]
    joint = rng.choice((", ", ", then "))
    return f"{holder.name} {joint.join(parts)}."


def _happening(event: Event, rng: Random) -> str:
    if event.sign == "*":
        return MULTIPLES[event.amount]
    if event.sign == "/":
        return f"keeps one of {event.amount} equal parts"
    verb = rng.choice(GAINS if event.sign == "+" else LOSSES)
    if event.groups:
        return f"{verb} {event.groups} {rng.choice(CONTAINERS)} of {event.amount}"
    return f"{verb} {event.amount}"


def _question(story: Story, rng: Random) -> str:
    if story.question == "together":
        return f"How many {story.item} do they have together?"
    if story.question == "difference":
        more, less = sorted(story.holders, key=lambda holder: -holder.end)
        return f"How many more does {more.name} have than {less.name}?"
    name = story.holders[0].name
    return rng.choice((f"How many {story.item} now?", f"How many {story.item} does {name} have?"))

"""Word problems as people tell them: many sentences, names, things and courtesies."""

from random import Random

from xpredflow.tasks.generated.minimath.story import Event, Holder, Story
from xpredflow.tasks.generated.people import Pool, address, draw_joint, put_aside

# All of these words are seen in training; sentences and questions are partly kept for evaluation.
GAINS = ("buys", "finds", "gets", "wins", "receives", "collects", "picks up")
LOSSES = ("loses", "gives away", "sells", "drops", "throws away")
CONTAINERS = ("bags", "boxes", "packs", "sets")
MULTIPLES = {
    2: ("doubles them", "makes it twice as many", "doubles that"),
    3: ("triples them", "makes it three times as many", "triples that"),
}
PARTS = (
    "keeps one of {n} equal parts",
    "splits them into {n} equal parts and keeps one",
    "makes {n} equal parts and keeps one",
)
HAS = Pool(
    (
        "{name} has {n} {item}",
        "{name} starts with {n} {item}",
        "{name} owns {n} {item}",
        "{name} had {n} {item}",
        "{name} started with {n} {item}",
        "{name} holds {n} {item}",
        "{name} brings {n} {item}",
        "{name} carries {n} {item}",
        "{name} got {n} {item}",
        "{name} came with {n} {item}",
        "first {name} has {n} {item}",
        "today {name} has {n} {item}",
        "in the morning {name} has {n} {item}",
        "the start of {name} is {n} {item}",
        "in {name}'s bag are {n} {item}",
        "{n} {item} is what {name} has",
        "say {name} has {n} {item}",
        "{name} comes in, has {n} {item}",
    ),
    ("{name} begins with {n} {item}", "at first {name} has {n} {item}"),
)
JOINTS = Pool(
    (
        *(", ", ", then ", " and then ", ", and ", "; ", "; then ", ", next ", ", later "),
        *(", afterwards ", " but then ", ", and later ", " and next ", "; and ", ", but then "),
        *(" and also ", ", also ", " and soon ", ", soon ", " - then ", " - ", ", and now "),
    ),
    (", after that ", " and "),
)
TOGETHER = Pool(
    (
        "How many {item} do they have together?",
        "How many {item} do both have together?",
        "What do they have together?",
        "How many are that together?",
        "How many {item} in all?",
        "How many {item} is that for everybody?",
        "What is the sum of their {item}?",
        "Count all {item} of them: how many?",
        "Altogether, how many {item}?",
        "How many {item} are there if they put them together?",
        "Tell me how many {item} they own together?",
        "And together?",
        "How many {item} in total?",
        "All in all they have how many?",
    ),
    ("Together they have how many {item}?", "How many {item} do they have in all?"),
)
DIFFERENCE = Pool(
    (
        "How many more does {more} have than {less}?",
        "How many more {item} does {more} have than {less}?",
        "By how many does {more} have more than {less}?",
        "{more} has how many more than {less}?",
        "How many more are there with {more} than with {less}?",
        "What does {more} have more than {less}?",
        "Compare {more} with {less}: how many more?",
        "{more} against {less}: what is the difference?",
        "What is the difference between {more} and {less}?",
        "How much more does {more} own than {less}?",
        "Tell me how many more {more} owns than {less}?",
        "So {more} has more, but how many more than {less}?",
    ),
    (
        "{more} has more than {less}: how many more?",
        "How many more {item} than {less} does {more} have?",
    ),
)
NOW = Pool(
    (
        "How many {item} now?",
        "How many {item} does {name} have?",
        "How many {item} does {name} have now?",
        "What does {name} have at the end?",
        "How many are left?",
        "How many {item} are left for {name}?",
        "What is left?",
        "So how many now?",
        "And now {name} has how many?",
        "How many {item} does that make?",
        "How many {item} will {name} have?",
        "Count them: how many {item}?",
        "With how many does {name} end?",
        "Tell me how many {item} {name} owns now?",
    ),
    ("{name} has how many {item} now?", "How many {item} are there at the end?"),
)
USE = Pool(
    (
        "Use {style}.",
        "Answer with {style}.",
        "Please use {style}.",
        "Show it with {style}.",
        "Write it with {style}.",
        "Work with {style}, please.",
        "Do it with {style}.",
        "In {style}.",
        "I like {style}.",
        "Take {style} for that.",
        "Tell me with {style}.",
        "The form is {style}.",
        "{style} would be best.",
        "You may use {style}.",
        "Let me see {style}.",
        "Solve this with {style}.",
        "Make it {style}, please.",
        "Only {style}.",
        "Reply in {style}.",
        "Explain it by {style}.",
        "Go with {style}.",
    ),
    ("Please answer with {style}.", "Show your work with {style}.", "I want it with {style}."),
)


def tell(story: Story, style: str, rng: Random, reserved: bool) -> str:
    """A story as a person may tell it."""
    sentences = [_sentence(holder, story.item, rng, reserved) for holder in story.holders]
    return told(sentences, _question(story, rng, reserved), style, rng, reserved)


def told(sentences: list[str], question: str, style: str, rng: Random, reserved: bool) -> str:
    """Sentences, the question and how to answer it, which may also stand first."""
    use = USE.draw(rng, reserved).format(style=style)
    first = rng.random() < 0.2
    parts = [use, *sentences, question] if first else [*sentences, question, use]
    return address(" ".join(put_aside(parts, rng, reserved)), rng, reserved)


def _sentence(holder: Holder, item: str, rng: Random, reserved: bool) -> str:
    start = HAS.draw(rng, reserved).format(name=holder.name, n=holder.start, item=item)
    joint = draw_joint(rng, JOINTS, reserved)
    parts = [start, *(happening(event, rng) for event in holder.events)]
    text = joint.join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def happening(event: Event, rng: Random) -> str:
    """What somebody does, without who."""
    if event.sign == "*":
        return rng.choice(MULTIPLES[event.amount])
    if event.sign == "/":
        return rng.choice(PARTS).format(n=event.amount)
    verb = rng.choice(GAINS if event.sign == "+" else LOSSES)
    if not event.groups:
        return f"{verb} {event.amount}"
    each = rng.choice(("of {n}", "with {n} each"))
    return f"{verb} {event.groups} {rng.choice(CONTAINERS)} {each.format(n=event.amount)}"


def _question(story: Story, rng: Random, reserved: bool) -> str:
    if story.question == "together":
        return TOGETHER.draw(rng, reserved).format(item=story.item)
    if story.question == "difference":
        more, less = sorted(story.holders, key=lambda holder: -holder.end)
        names = {"more": more.name, "less": less.name}
        return DIFFERENCE.draw(rng, reserved).format(item=story.item, **names)
    return NOW.draw(rng, reserved).format(item=story.item, name=story.holders[0].name)

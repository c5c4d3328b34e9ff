"""The meaning of a minimath problem: who has how many, what happens, what is asked."""

from dataclasses import dataclass
from itertools import product
from random import Random

PEOPLE = ("Tom", "Ann", "Sam", "Eva", "Ben", "Mia", "Leo", "Zoe")
ITEMS = ("apples", "books", "cards", "coins", "pens", "shells", "stamps", "toys")
QUESTIONS = ("together", "difference")
STARTS, AMOUNTS = (10, 40), (2, 9)
# Every result has two digits, so that the form of a worked answer says how long it is: where it
# took computing to know that, decoders of the whole response left too little room (docs/log.md).
SMALLEST = 10
LARGEST = 50  # of one holder's amounts: the fewer sums, the sooner they are all met
LARGEST_SUM = 60  # of two holders
LARGEST_FACTOR = 5  # of the groups that are gained or lost


@dataclass(frozen=True)
class Event:
    """+ or - an amount (`groups` of them, if any), * or / a factor."""

    sign: str
    amount: int
    groups: int = 0

    @property
    def text(self) -> str:
        return (
            f"{self.sign}{self.groups}*{self.amount}"
            if self.groups
            else f"{self.sign}{self.amount}"
        )

    @property
    def operand(self) -> int:
        return self.amount * (self.groups or 1)

    def apply(self, value: int) -> int:
        if self.sign == "+":
            return value + self.operand
        if self.sign == "-":
            return value - self.operand
        return value * self.amount if self.sign == "*" else value // self.amount


@dataclass(frozen=True)
class Holder:
    """Somebody with a start amount, and what happens to it."""

    name: str
    start: int
    events: tuple[Event, ...]

    @property
    def end(self) -> int:
        value = self.start
        for event in self.events:
            value = event.apply(value)
        return value

    @property
    def text(self) -> str:
        return " ".join([str(self.start), *(event.text for event in self.events)])


@dataclass(frozen=True)
class Story:
    """One holder, or two whose amounts are then added or compared."""

    item: str
    holders: tuple[Holder, ...]
    question: str = ""

    @property
    def core(self) -> str:
        """The meaning without people and things: what a split is decided by."""
        parts = [holder.text for holder in self.holders]
        return "; ".join([*parts, self.question] if self.question else parts)

    @property
    def id(self) -> str:
        return f"{self.item} {' '.join(holder.name for holder in self.holders)}: {self.core}"

    @property
    def answer(self) -> int:
        ends = [holder.end for holder in self.holders]
        if self.question == "difference":
            return abs(ends[0] - ends[1])
        return sum(ends)


def parse(id: str) -> Story:
    """The story that an id names."""
    heading, core = id.split(": ")
    item, *names = heading.split(" ")
    parts = core.split("; ")
    question = parts[len(names)] if len(parts) > len(names) else ""
    holders = zip(names, parts[: len(names)], strict=True)
    return Story(item, tuple(_parse_holder(name, text) for name, text in holders), question)


def _parse_holder(name: str, text: str) -> Holder:
    start, *events = text.split(" ")
    return Holder(name, int(start), tuple(_parse_event(event) for event in events))


def _parse_event(text: str) -> Event:
    groups, star, amount = text[1:].partition("*")
    return Event(text[0], int(amount), int(groups)) if star else Event(text[0], int(groups))


def draw(rng: Random, level: int) -> Story | None:
    """A story whose worked answer takes level + 1 equations, or nothing where numbers clash."""
    lines = level + 1
    item = rng.choice(ITEMS)
    names = rng.sample(PEOPLE, 2)
    if level > 1 and rng.random() < 0.4:
        first = rng.randint(1, lines - 2)
        a, b = _holder(rng, names[0], first), _holder(rng, names[1], lines - 1 - first)
        if a is None or b is None:
            return None
        story = Story(item, (a, b), rng.choice(QUESTIONS))
        return story if SMALLEST <= story.answer <= LARGEST_SUM else None
    holder = _holder(rng, names[0], lines)
    return holder and Story(item, (holder,))


def _holder(rng: Random, name: str, lines: int) -> Holder | None:
    start = value = rng.randint(*STARTS)
    events: list[Event] = []
    while lines:
        event = _event(rng, value, lines)
        if event.groups and event.operand < SMALLEST:
            return None
        # A factor right after a factor reads oddly and collapses into one.
        if events and event.sign in "*/" and events[-1].sign in "*/":
            return None
        lines -= 2 if event.groups else 1
        value = event.apply(value)
        if not SMALLEST <= value <= LARGEST:
            return None
        events.append(event)
    return Holder(name, start, tuple(events))


def _event(rng: Random, value: int, lines: int) -> Event:
    """An event that takes at most so many equations; exact division only."""
    sort = rng.randrange(6)
    if sort == 0 and value <= LARGEST // 3:
        return Event("*", rng.choice((2, 3)))
    if sort == 1:
        parts = [n for n in (2, 3, 4, 5) if value % n == 0 and value // n >= SMALLEST]
        if parts:
            return Event("/", rng.choice(parts))
    sign = rng.choice("+-")
    if sort in (2, 3) and lines >= 2:
        return Event(sign, rng.randint(*AMOUNTS), rng.randint(2, LARGEST_FACTOR))
    return Event(sign, rng.randint(*AMOUNTS))


def count_problems() -> int:
    """A lower bound: one holder, three gains or losses that keep the amount in range."""
    amounts = range(AMOUNTS[0], AMOUNTS[1] + 1)
    changes = [*amounts, *(-amount for amount in amounts)]
    ways = {start: 1 for start in range(STARTS[0], STARTS[1] + 1)}  # to have so many
    for _ in range(3):
        after: dict[int, int] = {}
        for (value, count), change in product(ways.items(), changes):
            if SMALLEST <= value + change <= LARGEST:
                after[value + change] = after.get(value + change, 0) + count
        ways = after
    return len(PEOPLE) * len(ITEMS) * sum(ways.values())

"""The meaning of a longmath problem: what two or three people have, in the order it happens."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from xpredflow.tasks.generated.minimath.story import (
    AMOUNTS,
    ITEMS,
    LARGEST,
    LARGEST_FACTOR,
    PEOPLE,
    SMALLEST,
    STARTS,
)

LARGEST_TOTAL = 99  # of everybody's: results have two digits, as in minimath
EQUATIONS = {1: (4, 5), 2: (6, 6), 3: (7, 8)}  # how many a worked answer may take, by level


@dataclass(frozen=True)
class Happening:
    """Something about the person of an index, `who`; what it is, its `sign` says.

    `=` starts with an amount; `+`, `-` gain and lose it (`groups` of them, if any); `*`, `/` are
    factors; `>` gives it to `other`; `m`, `f`, `t` start with so many more, so many fewer, or so
    many times as many as `other` has.
    """

    who: int
    sign: str
    amount: int
    groups: int = 0
    other: int = -1

    @property
    def text(self) -> str:
        groups = f"{self.groups}*" if self.groups else ""
        other = f"@{self.other}" if self.other >= 0 else ""
        return f"{self.who}{self.sign}{groups}{self.amount}{other}"

    @property
    def operand(self) -> int:
        return self.amount * (self.groups or 1)

    @property
    def equations(self) -> int:
        return {"=": 0, ">": 2}.get(self.sign, 2 if self.groups else 1)


@dataclass(frozen=True)
class Equation:
    """`a sign b = value`, about a person (by index), a product, or the final result."""

    about: int
    a: int
    sign: str
    b: int

    @property
    def value(self) -> int:
        return compute(self.a, self.sign, self.b)


PRODUCT, FINAL = -1, -2


@dataclass(frozen=True)
class Story:
    """Who, what, everything that happens, and the question: `all`, or `0-1` by index."""

    item: str
    names: tuple[str, ...]
    happenings: tuple[Happening, ...]
    question: str

    @property
    def core(self) -> str:
        """The meaning without people and things: what a split is decided by."""
        return "; ".join([*(h.text for h in self.happenings), "?" + self.question])

    @property
    def id(self) -> str:
        return f"{self.item} {' '.join(self.names)}: {self.core}"

    def equations(self) -> list[Equation]:
        """All of them in the order of the story."""
        have: dict[int, int] = {}
        found: list[Equation] = []
        for h in self.happenings:
            if h.sign == "=":
                have[h.who] = h.amount
                continue
            if h.groups:
                found.append(Equation(PRODUCT, h.groups, "*", h.amount))
            for about, source, sign in _changes(h):
                found.append(Equation(about, have[source], sign, h.operand))
                have[about] = found[-1].value
        return [*found, *self._final([have[who] for who in range(len(self.names))])]

    def _final(self, ends: list[int]) -> list[Equation]:
        if self.question == "all":
            first = Equation(FINAL, ends[0], "+", ends[1])
            return [first, *(Equation(FINAL, first.value, "+", end) for end in ends[2:])]
        a, b = map(int, self.question.split("-"))
        return [Equation(FINAL, ends[a], "-", ends[b])]

    @property
    def starts(self) -> dict[int, int]:
        """What is given of people whose start is not computed."""
        return {h.who: h.amount for h in self.happenings if h.sign == "="}

    @property
    def answer(self) -> int:
        return self.equations()[-1].value


def compute(a: int, sign: str, b: int) -> int:
    """One operation on whole numbers; division is exact."""
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // (b or 1)}[sign]


def _changes(h: Happening) -> list[tuple[int, int, str]]:
    """Whose amount changes, from whose, and by which operation."""
    if h.sign == ">":
        return [(h.who, h.who, "-"), (h.other, h.other, "+")]
    if h.sign in "mft":
        return [(h.who, h.other, {"m": "+", "f": "-", "t": "*"}[h.sign])]
    return [(h.who, h.who, h.sign)]


def parse(id: str) -> Story:
    """The story that an id names."""
    heading, core = id.split(": ")
    item, *names = heading.split(" ")
    *happenings, question = core.split("; ")
    return Story(item, tuple(names), tuple(map(_parse_happening, happenings)), question[1:])


def _parse_happening(text: str) -> Happening:
    body, _, other = text.partition("@")
    groups, star, amount = body[2:].rpartition("*")
    return Happening(
        int(body[0]), body[1], int(amount), int(groups) if star else 0, int(other or -1)
    )


def draw(
    rng: Random, level: int, equations: Mapping[int, tuple[int, int]] = EQUATIONS
) -> Story | None:
    """A story whose worked answer takes as many equations as its level says, or nothing."""
    count = 3 if rng.random() < 0.3 * (level - 1) else 2
    question = "all" if count == 3 or rng.random() < 0.5 else "difference"
    wanted = rng.choice(equations[level]) - (count - 1)
    have = {0: rng.randint(*STARTS)}
    happenings = [Happening(0, "=", have[0])]
    while wanted > 0 or len(have) < count:
        new = len(have) < count and (wanted <= 1 or rng.random() < 0.4)
        if not new and wanted <= 0:
            return None
        h = _start(rng, len(have)) if new else _event(rng, have, wanted)
        if h.groups and h.operand < SMALLEST:
            return None
        _follow(h, have)
        if not all(SMALLEST <= value <= LARGEST for value in have.values()):
            return None
        # A factor right after a factor reads oddly and collapses into one.
        if h.sign in "*/" and happenings[-1].sign in "*/t" and h.who == happenings[-1].who:
            return None
        wanted -= h.equations
        happenings.append(h)
    if wanted < 0:
        return None
    if question == "difference":
        question = "0-1" if have[0] > have[1] else "1-0"
    names = tuple(rng.sample(PEOPLE, count))
    story = Story(rng.choice(ITEMS), names, tuple(happenings), question)
    return story if SMALLEST <= story.answer <= LARGEST_TOTAL else None


def _follow(h: Happening, have: dict[int, int]) -> None:
    if h.sign == "=":
        have[h.who] = h.amount
        return
    for about, source, sign in _changes(h):
        have[about] = compute(have[source], sign, h.operand)


def _start(rng: Random, who: int) -> Happening:
    """What a further person has: a number, or in terms of somebody before."""
    sign = rng.choice("==mft")
    if sign == "=":
        return Happening(who, "=", rng.randint(*STARTS))
    amount = rng.choice((2, 3)) if sign == "t" else rng.randint(*AMOUNTS)
    return Happening(who, sign, amount, other=rng.randrange(who))


def _event(rng: Random, have: dict[int, int], equations: int) -> Happening:
    """Something that takes at most so many equations; exact division only."""
    who = rng.randrange(len(have))
    sort, amount = rng.randrange(8), rng.randint(*AMOUNTS)
    if sort == 0 and have[who] <= LARGEST // 2:
        return Happening(who, "*", rng.choice((2, 3)))
    if sort == 1:
        parts = [n for n in (2, 3, 4, 5) if have[who] % n == 0 and have[who] // n >= SMALLEST]
        if parts:
            return Happening(who, "/", rng.choice(parts))
    if sort in (2, 3) and equations >= 2 and len(have) > 1:
        other = rng.choice([one for one in have if one != who])
        return Happening(who, ">", amount, other=other)
    sign = rng.choice("+-")
    if sort in (4, 5) and equations >= 2:
        return Happening(who, sign, amount, rng.randint(2, LARGEST_FACTOR))
    return Happening(who, sign, amount)


def count_problems() -> int:
    """A lower bound: two people's starts, a gain of each, a gift, and the names; all told."""
    gains = AMOUNTS[1] - AMOUNTS[0] + 1
    # starts up to 20 and amounts below 10 leave every result between 10 and 50, the total too
    starts = 20 - SMALLEST + 1
    return len(ITEMS) * len(PEOPLE) * (len(PEOPLE) - 1) * (starts * gains) ** 2

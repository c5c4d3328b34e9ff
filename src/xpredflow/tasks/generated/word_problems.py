"""What the tasks of word problems share: a story told and worked, and answers graded by both."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from xpredflow.tasks.base import Problem, Runner, Verdict
from xpredflow.tasks.generated import people
from xpredflow.tasks.generated.splits import Drawer, Meaning, draw_digest, generated_size

_SIGNS = re.compile(r"[0-9+*/=-]+")
_SIDE = re.compile(r"([0-9]{1,4})(?:([-+*/])([0-9]{1,4}))?")


def untrue(working: str) -> str | None:
    """The first formula that does not hold, or that no equation is there; None where all hold.

    A formula is what digits and signs stand together in, such as 4*3=12, and x=4*3=12 too.
    """
    runs = [run for run in _SIGNS.findall(working) if any(c.isdigit() for c in run)]
    formulas = [run.removeprefix("=") for run in runs]
    values = ((formula, {_value(side) for side in formula.split("=")}) for formula in formulas)
    wrong = (formula for formula, found in values if len(found) > 1 or None in found)
    return next(wrong, None if any("=" in formula for formula in formulas) else "no equation")


def _value(side: str) -> Fraction | None:
    """Of a number or of one operation on two; None for anything else."""
    found = _SIDE.fullmatch(side)
    if found is None:
        return None
    a, sign, b = found.groups()
    if sign is None:
        return Fraction(a)
    if sign == "/":
        return Fraction(int(a), int(b)) if int(b) else None
    return Fraction({"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b)}[sign])


def grade_worked(text: str, expected: int) -> Verdict:
    """Whether the integer after the last #### is the expected one and all before it is true."""
    working, mark, tail = text.rpartition("####")
    if not mark:
        return Verdict(False, "no #### in the text")
    given = tail.split("\n", 1)[0].strip()
    if not re.fullmatch(r"-?[0-9]+", given):
        return Verdict(False, f"not an integer after ####: {given[:40]!r}")
    # The length first: int() of thousands of digits would raise.
    if len(given) >= 20 or int(given) != expected:
        return Verdict(False, f"{given[:40]} instead of {expected}")
    wrong = untrue(working)
    return Verdict(not wrong, f"not true: {wrong[:40]!r}" if wrong else "right")


class Answered(Meaning, Protocol):
    """A story whose question has a number for an answer."""

    @property
    def answer(self) -> int: ...


S = TypeVar("S", bound=Answered)


@dataclass(frozen=True)
class Stories(Generic[S]):
    """Stories of one kind: how they are drawn, told and worked."""

    draw: Callable[[Random, int], S | None]
    parse: Callable[[str], S]  # from its id
    recast: Callable[[S, Random, bool], S]  # other names and things; True: those kept for tests
    tell: Callable[[S, str, Random], str]
    phrase: Callable[[S, str, Random, bool], str]  # told as people write
    work: Callable[[S, str, Random], str]
    styles: Sequence[str]
    count_problems: Callable[[], int]


class WordProblems:
    """A generated task of word problems; answer and working must both be right."""

    name: ClassVar[str]
    response_length: ClassVar[int]
    stories: ClassVar[Stories[Any]]
    runs_programs = False

    def __init__(self, draw: int = 0) -> None:
        """`draw` other than 0: validation and test problems that were never published."""
        self._draw = Drawer(self.name, self.stories.draw, number=draw)
        self.digest = draw_digest(draw)

    def problem(self, split: str, index: int) -> Problem:
        """The problem at an index: train is endless, validation and test have 500 each."""
        story, level, rng = self._draw(split, index)
        style = rng.choice(self.stories.styles)
        if split in people.SPLITS:
            reserved = split == "paraphrase"
            story = self.stories.recast(story, rng, reserved)
            prompt = self.stories.phrase(story, style, rng, reserved)
        else:
            prompt = self.stories.tell(story, style, rng)
        return Problem(story.id, prompt, level, {"answer": story.answer, "style": style})

    def answer(self, problem: Problem, rng: Random) -> str:
        """One of the right worked answers in the style asked for: letters and orders are free."""
        return self.stories.work(self.stories.parse(problem.id), problem.meta["style"], rng)

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """Whether the integer after the last #### is the answer and every equation before it holds.

        The working counts because a model of this size can tell the answer without it: graded by
        the answer alone, most answers with garbled steps would pass, and decoders look alike.
        """
        return grade_worked(text, problem.meta["answer"])

    def size(self, split: str) -> int:
        """How many problems a split has."""
        return generated_size(split)

    def count_problems(self) -> int:
        """A lower bound of the number of distinct problems."""
        return self.stories.count_problems()

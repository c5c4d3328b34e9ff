"""What the synthetic tasks share: problems, verdicts, and splits that cannot overlap.

`train` has no end; `validation` and `test` are lists. `people` is training again, asked for as
people write; `paraphrase` is the test list in sentences, names and things that are kept for it.
"""

import sys
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import islice
from random import Random
from threading import Lock
from typing import Generic, Protocol, TypeVar, runtime_checkable

from xpredflow.errors import InputError, unknown_name

OWNERS = {
    "train": "train",
    "people": "train",
    "validation": "validation",
    "test": "test",
    "paraphrase": "test",
}
SPLITS = tuple(OWNERS)
LEVELS = (1, 2, 3)
HELD_OUT = 500  # problems in the validation split, and in the test split
RESPONSE_LENGTH = 64  # tokens an answer may take, the end-of-text token included
LONG_RESPONSE_LENGTH = 128  # of the tasks with long answers
# Draws that bring no new meaning before a level counts as used up: minimath has few short stories.
PATIENCE = 500


@runtime_checkable
class Meaning(Protocol):
    """The structured problem behind a prompt."""

    @property
    def id(self) -> str: ...

    @property
    def core(self) -> str: ...


def generated_size(split: str) -> int:
    """How many problems a split of a generated task has; training ends with the indices."""
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    return sys.maxsize if OWNERS[split] == "train" else HELD_OUT


def split_of(core: str) -> str:
    """The split that owns a core meaning: 2.5 % test, 2.5 % validation, the rest train."""
    slot = int.from_bytes(blake2b(core.encode(), digest_size=8).digest(), "big") % 1000
    if slot < 25:
        return "test"
    return "validation" if slot < 50 else "train"


def draw_digest(draw: int) -> str:
    """What tells the problems of another draw apart in stored results; nothing for the first."""
    return f"draw {draw}" if draw else ""


M = TypeVar("M", bound=Meaning)
# The held-out meanings of a task that are known by now, and where further ones come from.
_STREAMS: dict[tuple, tuple[list, Iterator]] = {}
_STREAMS_LOCK = Lock()


class Drawer(Generic[M]):
    """Turns (split, index) into a meaning of that split, the same one in every process.

    `number` is the draw of the held-out lists: 0 is the published one, any other has 500 meanings
    that no split and no other draw has.
    """

    def __init__(
        self,
        task: str,
        draw: Callable[[Random, int], M | None],
        accept: Callable[[M], bool] = lambda meaning: True,
        number: int = 0,
    ) -> None:
        if number < 0:
            raise InputError(f"draw is {number}: give 0, the published problems, or more")
        self._task = task
        self._draw = draw
        self._accept = accept
        self._number = number
        self._held_out: dict[str, list[tuple[M, int]]] = {}

    def __call__(self, split: str, index: int) -> tuple[M, int, Random]:
        """The meaning, its level, and the random numbers left for its wording."""
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        owner = OWNERS[split]
        if index < 0 or (owner != "train" and index >= HELD_OUT):
            size = "any index from 0" if owner == "train" else f"0 to {HELD_OUT - 1}"
            raise InputError(f"no problem {index} in {self._task} {split}: valid are {size}")
        if owner == "train":
            rng = Random(f"{self._task}/{split}/{index}")
            level = rng.choice(LEVELS)
            return self._owned(rng, level, owner), level, rng
        if owner not in self._held_out:
            self._held_out[owner] = self._list(owner)
        meaning, level = self._held_out[owner][index]
        place = index + HELD_OUT * self._number
        return meaning, level, Random(f"{self._task}/{owner}/{place}")

    def _owned(self, rng: Random, level: int, owner: str) -> M:
        while True:
            meaning = self._draw(rng, level)
            # The split first: held-out ones are rare, and acceptance may be slow.
            if meaning and split_of(meaning.core) == owner and self._accept(meaning):
                return meaning

    def _list(self, owner: str) -> list[tuple[M, int]]:
        """The held-out list of this draw: a stretch of one stream, so that draws are disjoint.

        A process goes through a stream once, whatever draws are asked for.
        """
        first = HELD_OUT * self._number
        key = (self._task, owner, self._draw, self._accept)
        with _STREAMS_LOCK:
            known, stream = _STREAMS.setdefault(key, ([], self._stream(owner)))
            known += islice(stream, max(first + HELD_OUT - len(known), 0))
        if len(known) < first + HELD_OUT:
            raise InputError(
                f"{self._task} has no {owner} problems left for draw {self._number}: give a"
                " smaller one"
            )
        return known[first : first + HELD_OUT]

    def _stream(self, owner: str) -> Iterator[tuple[M, int]]:
        """Levels in turn, no core meaning twice; a level without new ones leaves its turn."""
        rng = Random(f"{self._task}/{owner}")
        seen: set[str] = set()
        turn, used_up = 0, set()
        while len(used_up) < len(LEVELS):
            level = LEVELS[turn % len(LEVELS)]
            new = None if level in used_up else self._unseen(rng, level, owner, seen)
            if new is None:
                used_up.add(level)
            else:
                seen.add(new.core)
                yield new, level
            turn += 1

    def _unseen(self, rng: Random, level: int, owner: str, seen: set[str]) -> M | None:
        for _ in range(PATIENCE):
            meaning = self._owned(rng, level, owner)
            if meaning.core not in seen:
                return meaning
        return None

"""What the synthetic tasks share: problems, verdicts, and splits that cannot overlap."""

import sys
from collections.abc import Callable
from hashlib import blake2b
from random import Random
from typing import Generic, Protocol, TypeVar, runtime_checkable

from xpredflow.errors import InputError, unknown_name

SPLITS = ("train", "validation", "test")
LEVELS = (1, 2, 3)
HELD_OUT = 500  # problems in the validation split, and in the test split
RESPONSE_LENGTH = 64  # tokens an answer may take, the end-of-text token included


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
    return sys.maxsize if split == "train" else HELD_OUT


def split_of(core: str) -> str:
    """The split that owns a core meaning: 2.5 % test, 2.5 % validation, the rest train."""
    slot = int.from_bytes(blake2b(core.encode(), digest_size=8).digest(), "big") % 1000
    if slot < 25:
        return "test"
    return "validation" if slot < 50 else "train"


M = TypeVar("M", bound=Meaning)


class Drawer(Generic[M]):
    """Turns (split, index) into a meaning of that split, the same one in every process."""

    def __init__(
        self,
        task: str,
        draw: Callable[[Random, int], M | None],
        accept: Callable[[M], bool] = lambda meaning: True,
    ) -> None:
        self._task = task
        self._draw = draw
        self._accept = accept
        self._held_out: dict[str, list[tuple[M, int]]] = {}

    def __call__(self, split: str, index: int) -> tuple[M, int, Random]:
        """The meaning, its level, and the random numbers left for its wording."""
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        if index < 0 or (split != "train" and index >= HELD_OUT):
            size = "any index from 0" if split == "train" else f"0 to {HELD_OUT - 1}"
            raise InputError(f"no problem {index} in {self._task} {split}: valid are {size}")
        rng = Random(f"{self._task}/{split}/{index}")
        if split == "train":
            level = rng.choice(LEVELS)
            return self._owned(rng, level, split), level, rng
        if split not in self._held_out:
            self._held_out[split] = self._list(split)
        meaning, level = self._held_out[split][index]
        return meaning, level, rng

    def _owned(self, rng: Random, level: int, split: str) -> M:
        while True:
            meaning = self._draw(rng, level)
            # The split first: held-out ones are rare, and acceptance may be slow.
            if meaning and split_of(meaning.core) == split and self._accept(meaning):
                return meaning

    def _list(self, split: str) -> list[tuple[M, int]]:
        """The held-out list: levels in turn, no core meaning twice."""
        rng = Random(f"{self._task}/{split}")
        seen: set[str] = set()
        problems: list[tuple[M, int]] = []
        while len(problems) < HELD_OUT:
            level = LEVELS[len(problems) % len(LEVELS)]
            meaning = self._owned(rng, level, split)
            if meaning.core not in seen:
                seen.add(meaning.core)
                problems.append((meaning, level))
        return problems

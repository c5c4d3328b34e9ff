"""Which tokens a gap may hold at each of its positions: a finite automaton over tokens.

Tokens that lead to the same places are one class, so that a vocabulary of any size is a handful of
classes. A gap ends before its last position with a closing token; fillers follow it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.types import Model

DEAD = -1
OTHER, FILLER, CLOSING, FIRST_CONTENT = range(4)  # classes
NUMBER = {  # state: what its text may go on with, and where that leads
    "start": {"-": "minus", "0": "zero", "1": "whole"},
    "minus": {"0": "zero", "1": "whole"},
    "zero": {".": "dot"},
    "whole": {"0": "whole", "1": "whole", ".": "dot"},
    "dot": {"0": "fraction", "1": "fraction"},
    "fraction": {"0": "fraction", "1": "fraction"},
}
ENDS_A_NUMBER = ("zero", "whole", "fraction")


class Edges(NamedTuple):
    """Every move there is, one after another."""

    source: ndarray
    token_class: ndarray
    target: ndarray


@dataclass(frozen=True, eq=False)
class Automaton:
    """`moves[state][class]` is the next state, DEAD where there is none; 0 is the first state.

    The last state is that of a gap that was closed: only fillers follow there. With `neutral_end` a
    filler counts as much as the likeliest content, so that a short choice is not at a disadvantage.
    """

    classes: Int[Tensor, " V"]
    moves: list[list[int]]
    accepting: list[bool]
    filler: int
    neutral_end: bool = False

    @property
    def closed(self) -> int:
        """The state after the end."""
        return len(self.moves) - 1

    @cached_property
    def edges(self) -> Edges:
        """The moves as arrays."""
        found = [
            (state, at, target)
            for state, row in enumerate(self.moves)
            for at, target in enumerate(row)
            if target != DEAD
        ]
        return Edges(*np.array(found).T)

    def accepts(self, tokens: Sequence[int]) -> bool:
        """Whether the tokens are a whole gap."""
        state = 0
        for token in tokens:
            state = self.moves[state][int(self.classes[token])]
            if state == DEAD:
                return False
        return self.accepting[state]

    def content(self, tokens: Sequence[int]) -> list[int]:
        """The tokens before the end."""
        kept = []
        for token in tokens:
            if int(self.classes[token]) in (FILLER, CLOSING):
                break
            kept.append(token)
        return kept


def of_choices(model: Model, choices: Sequence[list[int]]) -> Automaton:
    """One of these token sequences, then fillers: a tree of their beginnings."""
    used = sorted({token for choice in choices for token in choice})
    classes = torch.full((len(model.embedding),), OTHER)
    classes[model.special.eos] = FILLER
    for i, token in enumerate(used):
        classes[token] = FIRST_CONTENT + i
    width = FIRST_CONTENT + len(used)
    moves, accepting = [[DEAD] * width], [False]
    for choice in choices:
        state = 0
        for token in choice:
            at = int(classes[token])
            if moves[state][at] == DEAD:
                moves.append([DEAD] * width)
                accepting.append(False)
                moves[state][at] = len(moves) - 1
            state = moves[state][at]
        accepting[state] = True
    return _closable(classes, moves, accepting, model.special.eos, neutral_end=True)


def of_kind(model: Model, kind: str, following: str) -> Automaton:
    """A string without quotes and escapes, or a number; `following` is the text after the gap."""
    return _of_kind(_ById(model), kind, following[:1])


class _ById:
    """A model as a key of a cache: the object itself."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __hash__(self) -> int:
        return id(self.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.model is self.model


@lru_cache(maxsize=64)
def _of_kind(key: _ById, kind: str, closing: str) -> Automaton:
    model = key.model
    texts = token_texts(model)
    states, advance, ends = _string() if kind == "string" else _number(kind == "integer")
    behind = [tuple(advance(state, text) for state in range(states)) for text in texts]
    nowhere = (DEAD,) * states
    kinds = sorted({places for places in behind if places != nowhere})
    classes = torch.tensor(
        [FIRST_CONTENT + kinds.index(places) if places != nowhere else OTHER for places in behind]
    )
    begin = [bool(closing) and text.startswith(closing) for text in texts]
    classes[torch.tensor(begin) & (classes == OTHER)] = CLOSING
    for token in model.special.ends:
        classes[token] = CLOSING
    classes[model.special.eos] = FILLER
    moves = [[DEAD] * FIRST_CONTENT + [p[state] for p in kinds] for state in range(states)]
    if not kinds:
        raise InputError(f"the tokenizer of {model.name!r} has no token for a {kind}")
    return _closable(classes, moves, [s in ends for s in range(states)], model.special.eos)


def _closable(
    classes: Tensor, moves: list[list[int]], accepting: list[bool], eos: int, **options: Any
) -> Automaton:
    """With the state after the end: reached from wherever the gap may end."""
    closed = len(moves)
    for state, ends in enumerate(accepting):
        if ends:
            moves[state][FILLER] = moves[state][CLOSING] = closed
    after = [DEAD] * len(moves[0])
    after[FILLER] = closed
    return Automaton(classes, [*moves, after], [*accepting, True], eos, **options)


Walk = tuple[int, Callable[[int, str], int], Iterable[int]]  # states, one token further, ends


def _string() -> Walk:
    """What a JSON string holds without escapes; it may be empty."""

    def advance(state: int, text: str) -> int:
        clean = text and all(c >= " " and c not in '"\\\x7f\N{REPLACEMENT CHARACTER}' for c in text)
        return 0 if clean else DEAD

    return 1, advance, {0}


def _number(integer: bool) -> Walk:
    """A number as JSON writes it, without an exponent."""
    names = list(NUMBER)

    def advance(state: int, text: str) -> int:
        if not text or len(text) > 32:
            return DEAD
        name: str | None = names[state]
        for character in text:
            if character not in "-.0123456789" or (integer and character == "."):
                return DEAD
            digit = "1" if character in "123456789" else character
            name = NUMBER[name].get(digit)  # type: ignore[index]
            if name is None:
                return DEAD
        return names.index(name)  # type: ignore[arg-type]

    return len(names), advance, {names.index(name) for name in ENDS_A_NUMBER}


def token_texts(model: Model) -> list[str]:
    """The text of every token alone; empty for special ones and for ids without a token."""
    special = set(model.tokenizer.all_special_ids) | {*model.special.ends, model.special.mask}
    known = min(len(model.tokenizer), len(model.embedding))
    texts = model.tokenizer.batch_decode([[token] for token in range(known)])
    texts = ["" if token in special else text for token, text in enumerate(texts)]
    return texts + [""] * (len(model.embedding) - known)

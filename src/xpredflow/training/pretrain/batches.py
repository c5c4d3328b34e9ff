"""Pretraining batches: prompt + answer, EOS to the right, made anew from their number alone.

Example number i is the same in every process and after every restart. Examples of similar length
share a batch, and only a part of the batches is filled up to the full response length: most of
that is EOS, which costs as much as text and is learned at once.
"""

from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, runtime_checkable

import torch
from tokenizers import Tokenizer

from xpredflow.errors import InputError
from xpredflow.tasks import make_task
from xpredflow.tasks.base import Problem
from xpredflow.training.common.answer_batches import BATCHES_PER_CHUNK
from xpredflow.training.common.masking import TextBatch

TRIES = 8  # to find an answer that fits the response; hardly one in 10,000 does not
STRIDE = 10**9  # to the problem that stands in for one whose answer does not fit


@runtime_checkable
class Source(Protocol):
    """Endless problems with right answers: a generated task, or an exercise."""

    @property
    def name(self) -> str: ...

    def problem(self, split: str, index: int) -> Problem: ...

    def answer(self, problem: Problem, rng: Random) -> str | list[tuple[str, bool]]:
        """The text, or its pieces and whether each is to be learned; others are given."""
        ...


def make_source(task: str | Source) -> Source:
    """A task by name, or as it is; it must know right answers to problems of its own."""
    made: Any = make_task(task) if isinstance(task, str) else task
    if not isinstance(made, Source):
        raise InputError(
            f"task {getattr(made, 'name', task)!r} has no right answers to learn from: give one"
            " with answer(problem, rng), such as minicode or minimath"
        )
    return made


def train_problem(source: Source, index: int) -> Problem:
    """A training problem of any index: one's own task may have few, which then come again."""
    size = getattr(source, "size", None)
    return source.problem("train", index if size is None else index % size("train"))


@dataclass(frozen=True)
class Mixture:
    """Where examples come from: tasks in turn, from their training split."""

    tasks: tuple[Source, ...]
    tokenizer: Tokenizer
    special: tuple[int, int, int]  # start of text, end of turn, EOS
    response_length: int  # the most that any of them needs
    seed: int

    def example(self, number: int) -> "Example":
        """Prompt and answer of a number."""
        task = self.tasks[number % len(self.tasks)]
        start, turn, _ = self.special
        # an exercise has no length of its own
        room = min(getattr(task, "response_length", self.response_length), self.response_length)
        for attempt in range(TRIES):
            problem = train_problem(task, number + attempt * STRIDE)
            ids, learned = self._encode(task.answer(problem, Random(f"{self.seed}/{number}")))
            if len(ids) < room:
                prompt = [start, *self.tokenizer.encode(problem.prompt).ids, turn]
                return Example(prompt, ids, learned, room)
        raise InputError(
            f"no answer to problem {number} of {task.name} fits {room} tokens with"
            f" EOS, nor to the {TRIES - 1} that stand in for it: raise vocabulary"
        )

    def _encode(self, answer: str | list[tuple[str, bool]]) -> tuple[list[int], list[bool]]:
        ids, learned = [], []
        for text, wanted in [(answer, True)] if isinstance(answer, str) else answer:
            piece = self.tokenizer.encode(text).ids
            ids += piece
            learned += [wanted] * len(piece)
        return ids, learned


@dataclass(frozen=True)
class Example:
    """Token ids without EOS, which of the answer are to be learned, and its response length."""

    prompt: list[int]
    answer: list[int]
    learned: list[bool]
    room: int

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


def chunk(mixture: Mixture, number: int, batch: int, full_share: float) -> list[TextBatch]:
    """The batches of one chunk; `full_share` of them are filled up to the response length."""
    first = number * BATCHES_PER_CHUNK * batch
    examples = [mixture.example(first + i) for i in range(BATCHES_PER_CHUNK * batch)]
    examples.sort(key=len)
    groups = [examples[i : i + batch] for i in range(0, len(examples), batch)]
    rng = Random(f"{mixture.seed}/chunk/{number}")
    rng.shuffle(groups)
    full = round(full_share * len(groups))
    return [_collate(mixture, group, i < full) for i, group in enumerate(groups)]


def _collate(mixture: Mixture, examples: list[Example], full: bool) -> TextBatch:
    longest = max(map(len, examples)) + 1
    if full:
        longest = max(len(e.prompt) + e.room for e in examples)
    eos = mixture.special[2]
    ids = [e.prompt + e.answer + [eos] * (longest - len(e)) for e in examples]
    response = [[False] * len(e.prompt) + e.learned + [True] * (longest - len(e)) for e in examples]
    return TextBatch(torch.tensor(ids), torch.tensor(response))

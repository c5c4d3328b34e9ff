"""Pretraining batches: prompt + answer, EOS to the right, made anew from their number alone.

Example number i is the same in every process and after every restart. Examples of similar length
share a batch, and only a part of the batches is filled up to the full response length: most of
that is EOS, which costs as much as text and is learned at once.
"""

from dataclasses import dataclass
from random import Random
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from tokenizers import Tokenizer
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.tasks.splits import Problem

BATCHES_PER_CHUNK = 16  # this many are drawn at once and sorted by length
TRIES = 8  # to draw an answer that fits the response; hardly one in 100,000 does not


@runtime_checkable
class Source(Protocol):
    """Endless problems with right answers: a generated task, or an exercise."""

    @property
    def name(self) -> str: ...

    def problem(self, split: str, index: int) -> Problem: ...

    def answer(self, problem: Problem, rng: Random) -> str: ...


@dataclass(frozen=True)
class Mixture:
    """Where examples come from: tasks in turn, from their training split."""

    tasks: tuple[Source, ...]
    tokenizer: Tokenizer
    special: tuple[int, int, int]  # start of text, end of turn, EOS
    response_length: int
    seed: int

    def example(self, number: int) -> tuple[list[int], list[int]]:
        """Prompt and answer ids; the answer without its EOS."""
        task = self.tasks[number % len(self.tasks)]
        problem = task.problem("train", number)
        rng = Random(f"{self.seed}/{number}")
        start, turn, _ = self.special
        prompt_ids = [start, *self.tokenizer.encode(problem.prompt).ids, turn]
        for _ in range(TRIES):
            answer_ids = self.tokenizer.encode(task.answer(problem, rng)).ids
            if len(answer_ids) < self.response_length:
                return prompt_ids, answer_ids
        raise InputError(
            f"no answer of {TRIES} to problem {number} of {task.name} fits {self.response_length}"
            " tokens with EOS: raise vocabulary"
        )


@dataclass(frozen=True)
class TextBatch:
    """Token ids and which of them belong to the response, EOS included."""

    ids: Int[Tensor, "B L"]
    response: Bool[Tensor, "B L"]


def chunk(mixture: Mixture, number: int, batch: int, full_share: float) -> list[TextBatch]:
    """The batches of one chunk; `full_share` of them are filled up to the response length."""
    first = number * BATCHES_PER_CHUNK * batch
    examples = [mixture.example(first + i) for i in range(BATCHES_PER_CHUNK * batch)]
    examples.sort(key=lambda e: len(e[0]) + len(e[1]))
    groups = [examples[i : i + batch] for i in range(0, len(examples), batch)]
    rng = Random(f"{mixture.seed}/chunk/{number}")
    rng.shuffle(groups)
    full = round(full_share * len(groups))
    return [_collate(mixture, group, i < full) for i, group in enumerate(groups)]


def _collate(
    mixture: Mixture, examples: list[tuple[list[int], list[int]]], full: bool
) -> TextBatch:
    longest = max(len(p) + len(a) + 1 for p, a in examples)
    if full:
        longest = max(len(p) for p, _ in examples) + mixture.response_length
    eos = mixture.special[2]
    ids = [p + a + [eos] * (longest - len(p) - len(a)) for p, a in examples]
    starts = torch.tensor([len(p) for p, _ in examples])
    return TextBatch(torch.tensor(ids), torch.arange(longest) >= starts.unsqueeze(-1))

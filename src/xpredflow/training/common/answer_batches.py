"""Alignment batches: self-generated answers of similar length, made anew from the step alone."""

from random import Random

import torch

from xpredflow.errors import InputError
from xpredflow.training.common.answers import Answer
from xpredflow.training.common.masking import TextBatch
from xpredflow.types import Model, SpecialTokens

BATCHES_PER_CHUNK = 16  # this many are drawn at once and sorted by length


def check_answers(answers: list[Answer], model: Model) -> None:
    """Refuse answers that this model cannot have written."""
    vocabulary = len(model.embedding)
    for answer in answers:
        ids = answer.prompt_ids + answer.response_ids
        where = f"answer {answer.number}"
        if not answer.response_ids or not answer.prompt_ids:
            raise InputError(f"{where} has an empty prompt or response: generate it again")
        if min(ids) < 0 or max(ids) >= vocabulary:
            wrong = next(i for i in ids if not 0 <= i < vocabulary)
            raise InputError(
                f"{where} holds token {wrong}, but {model.name!r} has tokens 0 to"
                f" {vocabulary - 1}: align the model that generated the answers"
            )
        if model.special.mask in answer.response_ids:
            raise InputError(
                f"the response of {where} holds token {model.special.mask}, which is the mask of"
                f" {model.name!r}: align the model that generated the answers"
            )
        if len(ids) > model.max_length:
            raise InputError(
                f"{where} has {len(ids)} tokens, but {model.name!r} takes at most"
                f" {model.max_length}: align the model that generated the answers"
            )


def hold_out(answers: list[Answer], count: int, seed: int) -> tuple[list[Answer], list[Answer]]:
    """Answers to train on, and at most `count` others (a fifth of a small file) to measure on."""
    if len(answers) < 2:
        raise InputError(f"{len(answers)} answer is too few: one is held out; generate more")
    count = min(count, max(1, len(answers) // 5))
    held = set(Random(f"{seed}/held out").sample(range(len(answers)), count))
    kept = [answer for i, answer in enumerate(answers) if i not in held]
    return kept, [answers[i] for i in sorted(held)]


def batch_at(answers: list[Answer], step: int, size: int, seed: int) -> list[Answer]:
    """The answers of one step: epochs in random order, neighbours in length share a batch."""
    number, place = divmod(step, BATCHES_PER_CHUNK)
    first, count = number * BATCHES_PER_CHUNK * size, BATCHES_PER_CHUNK * size
    drawn: list[Answer] = []
    epoch, skip = divmod(first, len(answers))
    while len(drawn) < skip + count:
        order = Random(f"{seed}/epoch/{epoch}").sample(range(len(answers)), len(answers))
        drawn += [answers[i] for i in order]
        epoch += 1
    drawn = sorted(drawn[skip : skip + count], key=length)
    places = Random(f"{seed}/chunk/{number}").sample(range(BATCHES_PER_CHUNK), BATCHES_PER_CHUNK)
    start = places[place] * size
    return drawn[start : start + size]


def length(answer: Answer) -> int:
    """Tokens of prompt and response."""
    return len(answer.prompt_ids) + len(answer.response_ids)


def text_batch(answers: list[Answer], special: SpecialTokens, block_size: int | None) -> TextBatch:
    """Prompt and response of each row, then the mask up to whole blocks.

    A bidirectional model does not read the columns after its response. A block-causal one reads
    masks in the rest of its last block, as it did when it decoded the answer; blocks that were
    never decoded, because the answer had ended, are not read.
    """
    size = block_size or 1
    columns = -(-max(map(length, answers)) // size) * size
    texts = [a.prompt_ids + a.response_ids for a in answers]
    ids = torch.tensor([text + [special.mask] * (columns - len(text)) for text in texts])
    starts = torch.tensor([len(a.prompt_ids) for a in answers]).unsqueeze(-1)
    ends = torch.tensor([len(text) for text in texts]).unsqueeze(-1)
    places = torch.arange(columns)
    return TextBatch(ids, (places >= starts) & (places < ends))

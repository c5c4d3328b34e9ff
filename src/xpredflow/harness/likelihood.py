"""log p(continuation | context) of a masked diffusion model, estimated as LLaDA publishes it.

A masked diffusion model has no exact likelihood; it has a lower bound (arXiv 2502.09992):
hide k of the L tokens, k uniform in 1..L, and weigh the log-probabilities of the hidden ones by
L/k. The mean over `samples` such draws is an unbiased estimate of the bound. Short continuations
have so few ways to be hidden that all are taken: then the bound is exact, and with one token it
is the likelihood itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import comb

import torch
from torch import Tensor

from xpredflow.engine.loop import decode_steps
from xpredflow.engine.rows import split_blocks
from xpredflow.errors import InputError
from xpredflow.types import Model


@dataclass(frozen=True)
class Pair:
    """Token ids of a context and of the continuation to score."""

    context: list[int]
    continuation: list[int]


@dataclass(frozen=True)
class _Hidden:
    """One masked copy of a pair: what the model reads, what it must find, and its weight."""

    owner: int
    ids: list[int]
    positions: list[int]
    truth: list[int]
    weight: float


def fit(model: Model, pair: Pair) -> Pair:
    """The pair with as much context, from its end, as the model takes."""
    room = model.max_length - len(pair.continuation)
    if room < 0:
        raise InputError(
            f"a continuation has {len(pair.continuation)} tokens, but {model.name!r} takes at most"
            f" {model.max_length} positions"
        )
    return Pair(pair.context[max(0, len(pair.context) - room) :], pair.continuation)


def estimate(
    model: Model, pairs: list[Pair], *, samples: int, seed: int = 0, max_batch: int = 32
) -> list[float]:
    """The bound of each pair, whatever the others are: the draws depend on seed and length only.

    Continuations of one length are hidden in the same way, so that the answers of a multiple
    choice are compared on equal terms.
    """
    totals = [0.0] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].context + pairs[i].continuation))
    copies = (copy for i in order for copy in _copies(model, i, pairs[i], samples, seed))
    while batch := list(islice(copies, max_batch)):
        for copy, found in zip(batch, _log_probabilities(model, batch), strict=True):
            totals[copy.owner] += copy.weight * found
    return totals


def patterns(length: int, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Which of `length` tokens are hidden in each copy (True), and the copies' weights.

    The k are spread evenly over 1..L from a random start, as LLaDA does to lower the variance;
    without its rounding, which favours some k.
    """
    if 2**length - 1 <= samples:
        numbers = torch.arange(1, 2**length).unsqueeze(-1)
        hidden = (numbers >> torch.arange(length)) % 2 == 1
        ways = [1 / (k * comb(length, k)) for k in hidden.sum(-1).tolist()]
        return hidden, torch.tensor(ways)
    draw = torch.Generator().manual_seed(seed)
    start = torch.rand((), generator=draw, dtype=torch.float64)
    spread = (start + torch.arange(samples, dtype=torch.float64) / samples) % 1
    k = 1 + (spread * length).long().clamp(max=length - 1)
    rank = torch.rand(samples, length, generator=draw).argsort(-1).argsort(-1)
    return rank < k.unsqueeze(-1), length / (k * samples)


def _copies(model: Model, owner: int, pair: Pair, samples: int, seed: int) -> Iterator[_Hidden]:
    """A block-causal model is asked block by block, with the text before each in clear."""
    text = pair.context + pair.continuation
    places = list(range(len(pair.context), len(text)))
    for block in split_blocks(places, None, model.block_size) if places else []:
        ids = text
        if model.block_size is not None:
            end = (block[-1] // model.block_size + 1) * model.block_size
            ids = text[:end] + [model.special.mask] * (end - len(text[:end]))
        hidden, weights = patterns(len(block), samples, seed)
        for which, weight in zip(hidden.tolist(), weights.tolist(), strict=True):
            chosen = [place for place, is_hidden in zip(block, which, strict=True) if is_hidden]
            masked = list(ids)
            for place in chosen:
                masked[place] = model.special.mask
            yield _Hidden(owner, masked, chosen, [text[p] for p in chosen], weight)


@torch.no_grad()
def _log_probabilities(model: Model, copies: list[_Hidden]) -> list[float]:
    """For each copy, the summed log-probability of the hidden tokens."""
    device = model.embedding.device
    ids = _padded([copy.ids for copy in copies], 0).to(device)
    positions = _padded([list(range(len(copy.ids))) for copy in copies], -1).to(device)
    columns = _padded([copy.positions for copy in copies], -1).to(device)
    truth = _padded([copy.truth for copy in copies], 0).to(device)
    logits = model.logits(model.embedding[ids], positions, columns.clamp(min=0)).float()
    found = logits.gather(-1, truth.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)
    return found.masked_fill(columns < 0, 0.0).sum(-1).tolist()


def _padded(rows: list[list[int]], filler: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [filler] * (width - len(row)) for row in rows])


def is_greedy(model: Model, pairs: list[Pair], *, max_batch: int = 32) -> list[bool]:
    """Whether mask prediction, one token per pass and of just that length, writes the same."""
    answers = [True] * len(pairs)
    lengths = {len(pair.continuation) for pair in pairs} - {0}
    for length in sorted(lengths):
        same = {i: p.context for i, p in enumerate(pairs) if len(p.continuation) == length}
        options = {"gen_length": length, "max_batch": max_batch, "stop_at_eos": False}
        for step in decode_steps(model, same, decoder="mask", **options):
            for done in step.finished:
                answers[done.row] = done.all_ids == pairs[done.row].continuation
    return answers

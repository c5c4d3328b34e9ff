"""What a pass predicts everywhere, held in the head's dtype and read a few positions at a time.

Over a vocabulary of 126k one fp32 copy of a response is 0.25 GB: none is ever made. Chunks are
converted, rid of what may not be predicted, summarised and forgotten.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Bytes of a chunk in fp32: small enough for a CPU's cache, large enough to fill an accelerator.
CHUNK_BYTES = {"cpu": 2**22}
ACCELERATOR_CHUNK = 2**26
BLOCK = 128  # tokens of which only the best is looked at first
BLOCKED_FROM = {"cpu": 64 * BLOCK}  # vocabularies for which that pays
KEPT = 4  # likeliest tokens that are kept
LEAST_ODDS = -1e4  # finite, so that a token without a chance still comes before a closed position


class Odds(NamedTuple):
    """How sure a token is: p, and log p/(1 − p), which tells apart what rounds to p = 1."""

    probability: Float[Tensor, "*S"]
    log_odds: Float[Tensor, "*S"]


class Summary(NamedTuple):
    """What is kept of the positions of a chunk, or of all."""

    top_probs: Float[Tensor, "*S 4"]
    top_tokens: Int[Tensor, "*S 4"]
    log_total: Float[Tensor, "*S"]
    log_odds: Float[Tensor, "*S"]
    bad: Bool[Tensor, "*S"] | None  # not finite; none where the host knows that there is nothing


class Head(NamedTuple):
    """What makes logits of hidden states, and of how many positions at once."""

    run: Callable[[Tensor], Tensor]
    at_once: int


@dataclass(frozen=True)
class Distribution:
    """Logits as the head gave them; `ruled_out` tokens have no probability.

    With a `bonus`, weight·log(1 + bonus) is added to them. With a `head` they are hidden states
    yet, of which it makes logits whenever they are asked for, some at a time.
    """

    logits: Float[Tensor, "B N V"]
    ruled_out: tuple[int, ...] = ()
    bonus: Float[Tensor, "B N V"] | None = None
    weight: float = 0.0
    head: Head | None = None

    def map(
        self, function: Callable[..., tuple[Tensor, ...]], *beside: Tensor
    ) -> tuple[Tensor, ...]:
        """`function` of fp32 logits (P, V), chunk by chunk, and the same positions of `beside`.

        It may write into the logits; what it returns, positions in front, is put together.
        """
        return self._each(lambda z, *others: function(self.close(z), *others), *beside)

    def _each(
        self, function: Callable[..., tuple[Tensor, ...]], *beside: Tensor
    ) -> tuple[Tensor, ...]:
        """The same with the logits of what is ruled out still there."""
        if self.head is not None:
            return self._in_pieces(self.head, function, *beside)
        found = []
        for rows, places in self._chunks():
            others = (tensor[rows, places].flatten(0, 1) for tensor in beside)
            found.append(function(self._chunk(rows, places), *others))
        shape = self.logits.shape[:2]
        if not found:  # no row, or no position
            some = [tensor.new_zeros(1, *tensor.shape[2:]) for tensor in beside]
            empty = function(self.logits.new_zeros(1, self.logits.shape[-1]).float(), *some)
            return tuple(part.new_zeros(*shape, *part.shape[1:]) for part in empty)
        whole = [
            parts[0] if len(parts) == 1 else torch.cat(parts) for parts in zip(*found, strict=True)
        ]
        return tuple(part.reshape(*shape, *part.shape[1:]) for part in whole)

    def _in_pieces(
        self, head: Head, function: Callable[..., tuple[Tensor, ...]], *beside: Tensor
    ) -> tuple[Tensor, ...]:
        """The same where logits are made of hidden states first."""
        hidden, others = self.logits.flatten(0, 1), [one.flatten(0, 1) for one in beside]
        found = []
        for start in range(0, max(1, len(hidden)), head.at_once):
            some = slice(start, start + head.at_once)
            logits = head.run(hidden[some]).unsqueeze(0)
            made = replace(self, logits=logits, head=None)
            found.append(made._each(function, *(one[some].unsqueeze(0) for one in others)))
        shape = self.logits.shape[:2]
        whole = [torch.cat(parts, dim=1) for parts in zip(*found, strict=True)]
        return tuple(part.reshape(*shape, *part.shape[2:]) for part in whole)

    def row(self, i: int) -> "Distribution":
        """One row of the batch alone."""
        bonus = None if self.bonus is None else self.bonus[i : i + 1]
        return replace(self, logits=self.logits[i : i + 1], bonus=bonus)

    def _chunk(self, rows: slice, places: slice) -> Float[Tensor, "P V"]:
        """Logits of some positions as an fp32 copy, with what is added to them."""
        chunk = self.logits[rows, places].flatten(0, 1).to(torch.float32, copy=True)
        if self.bonus is not None:
            chunk += self.weight * self.bonus[rows, places].flatten(0, 1).log1p()
        return chunk

    def close(self, chunk: Float[Tensor, "*S V"]) -> Float[Tensor, "*S V"]:
        """Take what is ruled out from a chunk of logits, in place."""
        for token in self.ruled_out:
            chunk.select(-1, token).fill_(-torch.inf)
        return chunk

    def at(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """The logits of these tokens."""
        if self.head is not None:
            return self.map(lambda z, t: (z.gather(-1, t.unsqueeze(-1)).squeeze(-1),), tokens)[0]
        index = tokens.unsqueeze(-1)
        found = self.logits.gather(-1, index).float().squeeze(-1)
        if self.bonus is not None:
            found = found + self.weight * self.bonus.gather(-1, index).squeeze(-1).log1p()
        for token in self.ruled_out:
            found = found.masked_fill(tokens == token, -torch.inf)
        return found

    def summary(self) -> Summary:
        """The likeliest tokens of every position, and where the logits are not finite."""
        rows, positions, _ = self.logits.shape
        if self.head is None and self.bonus is None and rows * positions <= self._room():
            made = self._summarised(self.logits.to(torch.float32, copy=True))
        else:
            made = self._each(self._summarised)
        probs, tokens, log_total, log_odds, sums = made
        # where it costs nothing to look
        if sums.device.type == "cpu" and np.isfinite(sums.numpy()).all():
            return Summary(probs, tokens, log_total, log_odds, None)
        # what is no number says nothing: its row ends with this pass, no rule shall trip on it
        for numbers in (probs, log_odds):
            numbers.nan_to_num_(1 / KEPT, torch.inf, -torch.inf)
        return Summary(probs, tokens, log_total, log_odds, sums - sums != 0)

    def _summarised(self, z: Float[Tensor, "*S V"]) -> tuple[Tensor, ...]:
        """What is kept of some positions, and sums that see a NaN or an infinity anywhere."""
        sums = z.sum(-1)
        top, tokens = likeliest(self.close(z))
        p = torch.softmax(z, -1)
        probs = p.gather(-1, tokens)
        best, second, *_ = top.unbind(-1)
        log_p = probs[..., 0].log()
        # at most the lead over the runner-up, which is left where all others round to nothing
        log_odds = torch.minimum(log_p - _others(p, tokens[..., :1]).log(), best - second)
        return probs, tokens, best - log_p, log_odds, sums

    def odds(self, tokens: Int[Tensor, "B N"], without: tuple[int, ...] = ()) -> Odds:
        """p and log-odds of these tokens; those in `without` get none, the others share it."""
        left = replace(self, ruled_out=(*self.ruled_out, *without))
        return Odds(*left.map(odds_of, tokens))

    def entropy(self) -> Float[Tensor, "B N"]:
        """H in nats; a sum of positive terms, so that a small one keeps its digits."""

        def of_chunk(z: Tensor) -> tuple[Tensor]:
            below = z - z.amax(-1, keepdim=True)
            p = torch.softmax(below, -1)
            # clamped: a token without a chance adds 0, not 0·∞
            return (-p.amax(-1).log() - (p * below.clamp_(min=-200)).sum(-1),)

        return self.map(of_chunk)[0]

    def _room(self) -> int:
        """How many positions a chunk may have."""
        size = CHUNK_BYTES.get(self.logits.device.type, ACCELERATOR_CHUNK)
        return size // (4 * self.logits.shape[-1])

    def _chunks(self) -> Iterator[tuple[slice, slice]]:
        """Whole rows while they are small, else some positions of one row."""
        rows, positions, _ = self.logits.shape
        room = self._room()
        if positions == 0:
            return
        if positions <= room:
            for row in range(0, rows, room // positions):
                yield slice(row, row + room // positions), slice(None)
            return
        for row in range(rows):
            for place in range(0, positions, max(1, room)):
                yield slice(row, row + 1), slice(place, place + max(1, room))


def likeliest(z: Float[Tensor, "*S V"]) -> tuple[Float[Tensor, "*S 4"], Int[Tensor, "*S 4"]]:
    """The four best logits and their tokens; of equal ones the lowest token is the first.

    Only the blocks with the best maxima can hold them: the vocabulary is read once.
    """
    if z.shape[-1] <= BLOCKED_FROM.get(z.device.type, 2 * KEPT * BLOCK):
        return _best(z)
    whole = z.shape[-1] // BLOCK * BLOCK
    _, chosen = _best(z[..., :whole].unflatten(-1, (-1, BLOCK)).amax(-1))
    inside = torch.arange(BLOCK, device=z.device)
    tokens = (chosen.unsqueeze(-1) * BLOCK + inside).flatten(-2)
    rest = torch.arange(whole, z.shape[-1], device=z.device).expand(*z.shape[:-1], -1)
    tokens = torch.cat((tokens, rest), dim=-1)  # the lowest of the best is in front of its equals
    top, index = _best(z.gather(-1, tokens))
    return top, tokens.gather(-1, index)


def _best(z: Float[Tensor, "*S K"]) -> tuple[Float[Tensor, "*S 4"], Int[Tensor, "*S 4"]]:
    """The four largest numbers and where they are; in front, of equal ones, the first."""
    found = _best_on_cpu(z) if z.device.type == "cpu" else None
    if found is not None:
        return found
    top, index = z.topk(KEPT)
    first = z.argmax(-1, keepdim=True)
    # topk takes any of equal ones: the first changes places with the one that is in front
    index = torch.where(index == first, index[..., :1], index)
    index[..., :1] = first
    return top, index


def _best_on_cpu(
    z: Float[Tensor, "*S K"],
) -> tuple[Float[Tensor, "*S 4"], Int[Tensor, "*S 4"]] | None:
    """The same by NumPy's argmax, where torch's topk and argmax compare one number at a time.

    What was found is taken out of `z` for the next round, and put back at the end. None where less
    than four numbers are finite: what was taken out could be found again.
    """
    numbers = z.numpy().reshape(-1, z.shape[-1])
    flat, starts = numbers.reshape(-1), np.arange(0, z.numel(), z.shape[-1])
    top, at = np.empty((KEPT, len(numbers)), np.float32), np.empty((KEPT, len(numbers)), np.int64)
    for logits, place in zip(top[::-1], at[::-1], strict=True):
        numbers.argmax(-1, out=place)
        place += starts
        flat.take(place, out=logits, mode="clip")  # all are inside: to check that costs a copy
        flat[place] = -np.inf
    flat[at] = top  # where one was found twice, what it was at first is written last
    if not np.isfinite(top).all():
        return None
    at -= starts
    best, tokens = (torch.from_numpy(np.ascontiguousarray(one[::-1].T)) for one in (top, at))
    return best.view(*z.shape[:-1], KEPT), tokens.view(*z.shape[:-1], KEPT)


def odds_of(z: Float[Tensor, "P V"], tokens: Int[Tensor, " P"]) -> Odds:
    """p of these tokens against all others together."""
    p, index = torch.softmax(z, -1), tokens.unsqueeze(-1)
    own = p.gather(-1, index).squeeze(-1)
    return Odds(own, (own.log() - _others(p, index).log()).clamp_(min=LEAST_ODDS))


def _others(p: Float[Tensor, "*S V"], index: Int[Tensor, "*S 1"]) -> Float[Tensor, "*S"]:
    """1 − p of a token, with all its digits: the others are summed, in which `p` is used up."""
    return p.scatter_(-1, index, 0.0).sum(-1)

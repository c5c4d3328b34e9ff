"""Logits -> what a decoder and a step-size policy look at: token, confidence, top four, ranking."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.distribution import KEPT, Distribution, Head, Odds
from xpredflow.types import Canvas, Signals, Space, SpecialTokens

# How far off its prediction, relative to the way there, a state may lie by rounding alone.
STRAIGHT = 1e-4


def read(
    logits: Float[Tensor, "B N V"],
    special: SpecialTokens,
    *,
    forbid_eos: bool = False,
    rank_ends_last: bool = False,
) -> Signals:
    """What logits of any dtype say, summed in fp32: bf16 confidences tie and change rankings.

    The mask token is never predicted. `forbid_eos` and `rank_ends_last` are LLaDA's
    `logits_eos_inf` and `confidence_eos_eot_inf`.
    """
    return read_checked(logits, special, forbid_eos, rank_ends_last)[0]


def read_checked(
    logits: Float[Tensor, "B N V"],
    special: SpecialTokens,
    forbid_eos: bool = False,
    rank_ends_last: bool = False,
    head: Head | None = None,
) -> tuple[Signals, Bool[Tensor, "B N"] | None]:
    """The signals, and the positions with a NaN or an infinity; none if there are none for sure.

    With a `head` the logits are hidden states yet.
    """
    ruled_out = (special.mask, special.eos) if forbid_eos else (special.mask,)
    last = special.ends if rank_ends_last else ()
    return summarised(Distribution(logits, ruled_out, head=head), last)


def summarised(
    distribution: Distribution, last: tuple[int, ...] = ()
) -> tuple[Signals, Bool[Tensor, "B N"] | None]:
    """What a distribution says, and where it is not finite."""
    probs, tokens, log_total, log_odds, bad = distribution.summary()
    if last:
        log_odds = distribution.odds(tokens[..., 0], last).log_odds.nan_to_num(posinf=torch.inf)
    return Signals(probs, tokens, log_total, log_odds, last, distribution), bad


def ranked(signals: Signals, tokens: Int[Tensor, "B N"] | None = None) -> Odds:
    """How sure tokens are for commitment, as a rule the predicted ones; `last` ones not at all."""
    if tokens is not None:
        return signals.whole.odds(tokens, signals.last)
    confidence = signals.log_odds.sigmoid() if signals.last else signals.confidence
    return Odds(confidence, signals.log_odds)


def jointly_sure(
    entropy: Float[Tensor, "B N"], open_: Bool[Tensor, "B N"], bound: float
) -> Bool[Tensor, "B N"]:
    """The lowest entropies of open positions while ΣH − max H ≤ bound; ties go to the left.

    That sum bounds what the tokens there can depend on each other (EB-sampler, 2505.24857).
    """
    rising, order = entropy.masked_fill(~open_, torch.inf).sort(dim=-1, stable=True)
    # the last one of a sorted prefix is its maximum: what is bounded is the sum before it
    before = rising.cumsum(-1).roll(1, -1)
    before[:, 0] = 0
    return torch.zeros_like(open_).scatter(-1, order, before <= bound) & open_


def features(
    signals: Signals, progress: Float[Tensor, "B N"], rho: Float[Tensor, " B"]
) -> Float[Tensor, "B N 8"]:
    """s = [p1, p2, p3, p4, H_4, p1 − p2, t, ρ], the learned policy's view of a position."""
    scalars = (signals.entropy4, signals.margin, progress, rho.unsqueeze(-1).expand_as(progress))
    return torch.cat([signals.top_probs, torch.stack(scalars, dim=-1)], dim=-1)


def mixture(
    signals: Signals, table: Float[Tensor, "V E"], k: int | None = 1
) -> Float[Tensor, "B N E"]:
    """X_pred: top-k predicted embeddings by renormalised probability; None is the full softmax."""
    k = k if k is None else min(k, table.shape[0])
    if k == 1:
        return torch.nn.functional.embedding(signals.tokens, table).float()
    if k is None:
        return _expected_embedding(signals.whole, table)
    if k <= KEPT:
        top, tokens = signals.top_probs[..., :k], signals.top_tokens[..., :k]
        return weighted(top / top.sum(-1, keepdim=True), tokens, table)
    top, tokens = signals.whole.map(lambda z: tuple(z.topk(k)))
    return weighted(top.softmax(-1), tokens, table)


def weighted(
    weights: Float[Tensor, "B N K"],
    tokens: Int[Tensor, "B N K"],
    table: Float[Tensor, "V E"],
    positions_at_once: int = 64,
) -> Float[Tensor, "B N E"]:
    """Σ_k w_k·W_e[token_k], a few positions at a time: K embeddings of each are held."""
    pairs = zip(
        weights.flatten(0, 1).split(positions_at_once),
        tokens.flatten(0, 1).split(positions_at_once),
        strict=True,
    )
    sums = [(w.unsqueeze(-1) * table[chosen].float()).sum(-2) for w, chosen in pairs]
    return torch.cat(sums).unflatten(0, weights.shape[:2])


def _expected_embedding(whole: Distribution, table: Float[Tensor, "V E"]) -> Float[Tensor, "B N E"]:
    """softmax(z)·W_e."""
    return whole.map(lambda z: ((z.softmax(-1).to(table.dtype) @ table).float(),))[0]


def nearest_tokens(canvas: Canvas, space: Space, tokens_at_once: int = 2048) -> Int[Tensor, "B N"]:
    """The embedding nearest to the state once its share of the mask, 1 − t, is taken out (Eq. 3).

    A position that never moved (t = 0) has no direction yet and keeps its last prediction, and so
    does one that went straight to it: only the others are searched for.
    """
    t = canvas.progress.unsqueeze(-1)
    clean = (canvas.state - (1 - t) * space.mask) / t.clamp(min=1e-6)
    target = space.embed(canvas.tokens)
    off, path = (clean - target).square().sum(-1), (target - space.mask).square().sum(-1)
    arrived = (off <= STRAIGHT**2 * path) & (canvas.tokens != space.special.mask)
    searched = ((canvas.progress > 0) & ~arrived & ~canvas.frozen).nonzero(as_tuple=True)
    return canvas.tokens.index_put(searched, _nearest(clean[searched], space, tokens_at_once))


def _nearest(states: Float[Tensor, "K E"], space: Space, tokens_at_once: int) -> Int[Tensor, " K"]:
    """The token whose embedding is nearest to each state; never the mask."""
    best = torch.full_like(states[:, 0], -torch.inf)
    tokens = torch.zeros_like(best, dtype=torch.long)
    # in pieces: an fp32 copy of a 126k x 4096 table would cost 2 GB, of 2048 rows 34 MB
    for first, rows in enumerate(space.table.split(tokens_at_once) if len(states) else ()):
        rows = rows.float()
        score = states @ rows.T - rows.square().sum(-1) / 2  # |w − x|² less |x|², halved, negated
        offset = first * tokens_at_once
        if offset <= space.special.mask < offset + len(rows):
            score[:, space.special.mask - offset] = -torch.inf
        top, index = score.max(-1)
        tokens = torch.where(top > best, index + offset, tokens)
        best = torch.maximum(best, top)
    return tokens

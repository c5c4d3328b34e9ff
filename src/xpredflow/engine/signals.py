"""Logits -> what a decoder and a step-size policy look at: token, confidence, top four, ranking."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.types import Canvas, Signals, Space, SpecialTokens


def read(
    logits: Float[Tensor, "B N V"],
    special: SpecialTokens,
    *,
    forbid_eos: bool = False,
    rank_ends_last: bool = False,
) -> Signals:
    """One log-sum-exp and one top-k in fp32: bf16 confidences tie and change rankings.

    The mask token is never predicted. `forbid_eos` and `rank_ends_last` are LLaDA's
    `logits_eos_inf` and `confidence_eos_eot_inf`.
    """
    logits = logits.to(torch.float32, copy=True)
    logits[..., special.mask] = -torch.inf
    if forbid_eos:
        logits[..., special.eos] = -torch.inf
    return summarised(logits, special.ends if rank_ends_last else ())


def summarised(logits: Float[Tensor, "B N V"], last: tuple[int, ...] = ()) -> Signals:
    """The signals of logits that are fp32 already and rule out what may not be predicted."""
    log_total = logits.logsumexp(-1)
    top, tokens = logits.topk(4, dim=-1)
    probs = (top - log_total.unsqueeze(-1)).exp()
    return Signals(logits, log_total, probs, tokens, last)


def log_probs(signals: Signals) -> Float[Tensor, "B N V"]:
    """log p of every token, for the rules that compare whole distributions."""
    return signals.logits - signals.log_total.unsqueeze(-1)


def not_finite(logits: Float[Tensor, "B N V"]) -> Bool[Tensor, "B N"]:
    """Positions with a NaN or an infinity; one sum sees all of them."""
    return ~logits.sum(-1, dtype=torch.float32).isfinite()


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
    k = k if k is None else min(k, len(table))
    if k == 1:
        return table[signals.tokens].float()
    if k is None:
        return _expected_embedding(signals, table)
    top, tokens = signals.logits.topk(k, dim=-1)
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


def _expected_embedding(
    signals: Signals, table: Float[Tensor, "V E"], rows_at_once: int = 64
) -> Float[Tensor, "B N E"]:
    """softmax(z)·W_e, a few positions at a time so that no second (N, V) table is held."""
    flat = signals.logits.flatten(0, 1)
    chunks = [z.softmax(-1).to(table.dtype) @ table for z in flat.split(rows_at_once)]
    return torch.cat(chunks).float().unflatten(0, signals.log_total.shape)


def nearest_tokens(canvas: Canvas, space: Space, tokens_at_once: int = 16384) -> Int[Tensor, "B N"]:
    """The embedding nearest to the state once its share of the mask, 1 − t, is taken out (Eq. 3).

    A position that never moved (t = 0) has no direction yet and keeps its last prediction.
    """
    t = canvas.progress.unsqueeze(-1)
    clean = (canvas.state - (1 - t) * space.mask) / t.clamp(min=1e-6)
    best = torch.full_like(canvas.progress, -torch.inf)
    tokens = canvas.tokens
    # in pieces: an fp32 copy of a 126k x 4096 table would cost 2 GB
    for first, rows in enumerate(space.table.split(tokens_at_once)):
        rows = rows.float()
        score = clean @ rows.T - rows.square().sum(-1) / 2  # |w − x|² less |x|², halved, negated
        offset = first * tokens_at_once
        if offset <= space.special.mask < offset + len(rows):
            score[..., space.special.mask - offset] = -torch.inf
        top, index = score.max(-1)
        tokens = torch.where((top > best) & (canvas.progress > 0), index + offset, tokens)
        best = torch.maximum(best, top)
    return tokens

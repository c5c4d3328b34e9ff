"""x-prediction flow: continuous decoding in embedding space, one token-wise step per forward pass.

Source: "x-Prediction Flow: Efficient Continuous Decoding for Masked Diffusion Language Models".
Equation numbers are the paper's. Every rule the paper ablates is a value in `Rules`.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.signals import jointly_sure, mixture
from xpredflow.types import Canvas, Event, Policy, Signals, Space, StepInfo


@dataclass(frozen=True)
class Rules:
    """What may be varied about the flow; the defaults are explained in docs/decisions.md."""

    reedit_margin: float | None = 0.1  # re-edit where c − t < −margin; None: never
    reedit_when: Literal["before", "after"] = "before"  # t before or after this step's update
    trust: Literal["predicted", "held"] = "predicted"  # token that c is of; held: not the paper's
    commit: Literal["before", "after", "off"] = "before"  # which t says who may be committed
    commit_below: float = 0.99  # only positions with less progress are candidates
    commit_above: float | None = None  # also commit every candidate with c ≥ this; not the paper's
    commit_bound: float | None = None  # also the surest while ΣH − max H ≤ this; not the paper's
    tau: float = 0.9  # a row stops when every t ≥ τ
    confirm: bool = False  # and one more pass takes nothing back; not the paper's
    clamp: float = 0.05  # floor of 1 − t in the velocity
    top_k: int | None = 1  # readout of the clean state; None: full softmax
    final: Literal["state", "prediction"] = "state"  # where the emitted tokens are read


@dataclass(frozen=True)
class Flow:
    """The decoder: a step-size policy and the rules it moves under."""

    policy: Policy
    rules: Rules = Rules()

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        """One step of the flow from the predictions at every position."""
        rules, m, live = self.rules, space.mask, ~canvas.frozen
        x, t, c = canvas.state, canvas.progress, signals.confidence

        x_pred = mixture(signals, space.table, rules.top_k)  # Eq. 4
        action = self.policy(signals, t, info)
        dt = action.fraction * (1 - t)  # Eq. 7: Δt = a(1 − t)
        v = (x_pred - x) / (1 - t).clamp(min=rules.clamp).unsqueeze(-1)  # Eq. 5
        x_next = x + v * dt.unsqueeze(-1)  # Eq. 6
        t_next = t + dt  # Eq. 8

        trust = c if rules.trust == "predicted" else signals.probability(canvas.tokens)
        reedited = live & self._distrusted(trust, t if rules.reedit_when == "before" else t_next)
        mixed = c.unsqueeze(-1) * x_pred + (1 - c).unsqueeze(-1) * m  # Eq. 12
        x_next = torch.where(reedited.unsqueeze(-1), mixed, x_next)
        t_next = torch.where(reedited, c, t_next)

        committed = self._surest(signals, t if rules.commit == "before" else t_next, live)
        x_next = torch.where(committed.unsqueeze(-1), x_pred, x_next)
        t_next = t_next.masked_fill(committed, 1.0)

        canvas = canvas.update(
            state=torch.where(live.unsqueeze(-1), x_next, x),
            progress=torch.where(live, t_next, t),
            tokens=torch.where(live, signals.tokens, canvas.tokens),
            memory={"reached": t >= rules.tau} if rules.confirm else canvas.memory,
        )
        moved = live & ~reedited & ~committed & (t < 1)
        return canvas, Event(signals, reedited, committed, action, moved)

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Early stopping, Eq. 10: min_i t_i ≥ τ."""
        there = canvas.progress >= self.rules.tau
        if self.rules.confirm:
            there = there & canvas.memory["reached"]
        return (there | canvas.frozen).all(-1)

    def finish(self, canvas: Canvas, space: Space) -> Int[Tensor, "B N"]:
        """The last prediction, or the token that the state itself has reached."""
        if self.rules.final == "prediction":
            return canvas.tokens
        return nearest_tokens(canvas, space)

    def _distrusted(self, c: Float[Tensor, "B N"], t: Float[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
        """Re-editing: confidence has fallen well below the progress made."""
        if self.rules.reedit_margin is None:
            return torch.zeros_like(c, dtype=torch.bool)
        return c - t < -self.rules.reedit_margin

    def _surest(
        self, signals: Signals, t: Float[Tensor, "B N"], live: Bool[Tensor, "B N"]
    ) -> Bool[Tensor, "B N"]:
        """Hard commitment: the most confident position of each row that is not settled yet."""
        candidates = live & (t < self.rules.commit_below)
        if self.rules.commit == "off":
            return torch.zeros_like(candidates)
        best = signals.rank.masked_fill(~candidates, -torch.inf).argmax(-1, keepdim=True)
        chosen = torch.zeros_like(candidates).scatter(-1, best, True)
        if self.rules.commit_above is not None:
            chosen = chosen | (signals.confidence >= self.rules.commit_above)
        if self.rules.commit_bound is not None:
            chosen = chosen | jointly_sure(signals.entropy, candidates, self.rules.commit_bound)
        return chosen & candidates


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

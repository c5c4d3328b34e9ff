"""x-prediction flow: continuous decoding in embedding space, one token-wise step per forward pass.

Source: "x-Prediction Flow: Efficient Continuous Decoding for Masked Diffusion Language Models".
Equation numbers are the paper's, and so are the rules; ours are in flow_extensions.py.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.signals import KEPT, mixture, nearest_tokens
from xpredflow.settings import Field, settings
from xpredflow.types import Action, Canvas, Event, Policy, Signals, Space, StepInfo


@settings
class Rules:
    """The paper's rules; what it leaves open was measured (docs/decisions.md)."""

    reedit_margin: float | None = Field(0.1, ge=0, description="re-edit where c − t < −margin")
    reedit_when: Literal["before", "after"] = Field("before", description="t of which moment")
    commit: Literal["before", "after", "off"] = Field("before", description="t of which moment")
    commit_max_progress: float = Field(0.99, gt=0, le=1, description="candidates have t below this")
    tau: float = Field(0.9, gt=0, le=1, description="a row stops when every t ≥ τ")
    clamp: float = Field(0.05, ge=1e-6, le=1, description="floor of 1 − t in the velocity")
    top_k: int | None = Field(1, ge=1, description="tokens in the predicted state; none: all")
    final: Literal["state", "prediction"] = Field("state", description="where tokens are read")


@dataclass(frozen=True)
class Flow:
    """The decoder: a step-size policy and the rules it moves under.

    generate(model, question, decoder=Flow(Constant(1 / 8), Rules(tau=0.8)))
    """

    name: ClassVar[str] = "flow"
    policy: Policy
    rules: Rules = field(default_factory=Rules)

    @property
    def revises(self) -> bool:
        """Whether a position that has arrived may still change."""
        return self.rules.reedit_margin is not None or self.rules.final == "prediction"

    @property
    def summaries_only(self) -> bool:
        """Whether the likeliest tokens are all that it looks at."""
        return self.rules.top_k is not None and self.rules.top_k <= KEPT

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        """One step of the flow from the predictions at every position."""
        rules, live = self.rules, ~canvas.frozen
        x, t, c, rest = canvas.state, canvas.progress, signals.confidence, 1 - canvas.progress

        x_pred = mixture(signals, space.table, rules.top_k)  # Eq. 4
        action = self.policy(signals, t, info)
        dt = live * action.fraction * rest  # Eq. 7: Δt = a(1 − t); none at padding
        share = dt / rest.clamp(min=rules.clamp)  # Eq. 5: V = (X_pred − X)/(1 − t)
        x_next = torch.lerp(x, x_pred, share.unsqueeze(-1))  # Eq. 6: X + V·Δt
        t_next = t + dt  # Eq. 8

        trust, at = self.trust(canvas, signals), t if rules.reedit_when == "before" else t_next
        reedited = live & self.distrusted(trust, at, action)  # Eq. 11
        t_next = torch.where(reedited, c, t_next)

        open_ = (t if rules.commit == "before" else t_next) < rules.commit_max_progress
        committed = self.commitments(signals, live & open_, action)
        t_next = t_next.masked_fill(committed, 1.0)

        # Eq. 12: t·X_pred + (1 − t)·m, where t is c; or 1, which is to commit
        reset = reedited | committed
        mixed = torch.lerp(space.mask, x_pred, t_next.unsqueeze(-1))
        x_next = torch.where(reset.unsqueeze(-1), mixed, x_next)

        tokens = torch.where(live, signals.tokens, canvas.tokens)
        canvas = canvas.update(state=x_next, progress=t_next, tokens=tokens)
        return canvas, Event(signals, reedited, committed, action, dt)

    def trust(self, canvas: Canvas, signals: Signals) -> Float[Tensor, "B N"]:
        """What re-editing holds against progress: c of the prediction (Eq. 11)."""
        return signals.confidence

    def distrusted(
        self, c: Float[Tensor, "B N"], t: Float[Tensor, "B N"], action: Action
    ) -> Bool[Tensor, "B N"]:
        """Re-editing: confidence has fallen well below the progress made."""
        margin = self.rules.reedit_margin
        return torch.zeros_like(c, dtype=torch.bool) if margin is None else c - t < -margin

    def commitments(
        self, signals: Signals, candidates: Bool[Tensor, "B N"], action: Action
    ) -> Bool[Tensor, "B N"]:
        """Hard commitment: the most confident candidate of each row."""
        if self.rules.commit == "off":
            return torch.zeros_like(candidates)
        open_odds = torch.where(candidates, signals.log_odds, -torch.inf)
        surest = open_odds.argmax(-1, keepdim=True)
        return torch.zeros_like(candidates).scatter_(-1, surest, True) & candidates

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Early stopping: min_i t_i ≥ τ (Eq. 10)."""
        return ((canvas.progress >= self.rules.tau) | canvas.frozen).all(-1)

    def finish(self, canvas: Canvas, space: Space) -> Int[Tensor, "B N"]:
        """The last prediction, or the token that the state itself has reached."""
        if self.rules.final == "prediction":
            return canvas.tokens
        return nearest_tokens(canvas, space)

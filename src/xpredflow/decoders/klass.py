"""KLASS (arXiv 2511.05664): commit what is sure and no longer changes its mind."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    Discrete,
    Prediction,
    even_quota,
    open_positions,
    recall,
    remember,
    require_probability,
    top_ranked,
)
from xpredflow.engine.signals import log_probs
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@dataclass(frozen=True)
class Klass(Discrete):
    """Commit c > threshold where KL(p_t ‖ p_{t−1}) is small, else the even quota (2511.05664)."""

    name: ClassVar[str] = "klass"
    threshold: float = 0.9  # published: 0.6 for GSM8K, 0.7 for MBPP, 0.9 for HumanEval
    kl_threshold: float = 0.01  # published: 0.015 for GSM8K, 0.01 for MBPP and HumanEval
    history: int = 2  # passes in a row with a smaller KL

    def __post_init__(self) -> None:
        super().__post_init__()
        require_probability("threshold", self.threshold)
        if not self.kl_threshold >= 0:
            raise InputError(f"kl_threshold is {self.kl_threshold}: give a divergence ≥ 0 in nats")
        if self.history < 0:
            raise InputError(f"history is {self.history}: give a number of passes ≥ 0")

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        now = log_probs(signals)
        moved = divergence(now, canvas.memory.get("log_probs", now))
        # a block's first pass has nothing to compare with
        calm = (moved < self.kl_threshold) & (info.step > 0).unsqueeze(-1)
        stable = torch.where(calm, recall(canvas, "stable") + 1, 0.0)
        canvas = remember(canvas, log_probs=now, stable=stable)
        return super().step(canvas, signals, info, space)

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_ = open_positions(canvas)
        ready = open_ & (prediction.rank > self.threshold)
        ready &= recall(canvas, "stable") >= self.history
        quota = even_quota(canvas.frozen, info).clamp(min=1)
        surest = top_ranked(prediction.rank, open_, quota)
        return torch.where(ready.any(-1, keepdim=True), ready, surest)


def divergence(p: Float[Tensor, "B N V"], q: Float[Tensor, "B N V"]) -> Float[Tensor, "B N"]:
    """KL(p ‖ q) in nats, from log-probabilities; a token that p rules out adds nothing."""
    return torch.where(p == -torch.inf, 0.0, p.exp() * (p - q)).sum(-1)

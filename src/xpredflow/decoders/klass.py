"""KLASS (arXiv 2511.05664): commit what is sure and no longer changes its mind."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    Discrete,
    Prediction,
    even_quota,
    kept_distribution,
    kept_divergence,
    open_positions,
    recall,
    remember,
    top_ranked,
)
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@DECODERS.register(
    "klass",
    summary="commits what is sure and stable from pass to pass, else an even share (KLASS)",
    main="threshold",
)
@settings
class Klass(Discrete):
    """Commit c > threshold where KL(p_t ‖ p_{t−1}) is small, else the even quota (2511.05664)."""

    whole_distribution: ClassVar[bool] = True

    threshold: float = Field(
        0.9, ge=0, le=1, description="published: 0.6 for GSM8K, 0.7 for MBPP, 0.9 for HumanEval"
    )
    kl_threshold: float = Field(
        0.01,
        ge=0,
        allow_inf_nan=True,
        description="in nats; published: 0.015 for GSM8K, 0.01 for MBPP and HumanEval",
    )
    history: int = Field(2, ge=0, description="passes in a row with a smaller KL")

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        moved = kept_divergence(divergence, canvas, signals)
        # a block's first pass has nothing to compare with
        calm = (moved < self.kl_threshold) & (info.step > 0).unsqueeze(-1)
        stable = torch.where(calm, recall(canvas, "stable") + 1, 0.0)
        canvas = remember(canvas, stable=stable, **kept_distribution(signals))
        return super().step(canvas, signals, info, space)

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_ = open_positions(canvas)
        ready = open_ & (prediction.confidence > self.threshold)
        ready &= recall(canvas, "stable") >= self.history
        quota = even_quota(canvas.frozen, info, least=1)
        surest = top_ranked(prediction.log_odds, open_, quota)
        return torch.where(ready.any(-1, keepdim=True), ready, surest)


def divergence(p: Float[Tensor, "P V"], q: Float[Tensor, "P V"]) -> Float[Tensor, " P"]:
    """KL(p ‖ q) in nats, from log-probabilities; a token that p rules out adds nothing."""
    return torch.where(p == -torch.inf, 0.0, p.exp() * (p - q)).sum(-1)

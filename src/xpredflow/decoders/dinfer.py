"""dInfer's parallel decoders (arXiv 2510.08666): spread commitments out, or credit constancy."""

from dataclasses import replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    Discrete,
    Prediction,
    open_positions,
    remember,
)
from xpredflow.decoders.threshold import Threshold, sure_enough
from xpredflow.engine.signals import summarised
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@DECODERS.register(
    "hierarchy",
    summary="commits the surest of every open run and all above a threshold (dInfer)",
    main="threshold",
)
@settings
class Hierarchy(Discrete):
    """Commit each open run's surest if c > low_threshold, and all c ≥ threshold (2510.08666)."""

    threshold: float = Field(0.92, ge=0, le=1, description="commit where c reaches this")
    low_threshold: float = Field(
        0.4, ge=0, le=1, description="for the surest of a run; published values are 0.4 to 0.62"
    )

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_, rank = open_positions(canvas), prediction.log_odds
        leading = open_ & (rank == best_of_run(rank, open_))
        leading &= prediction.confidence > self.low_threshold
        return leading | sure_enough(prediction, open_, self.threshold)


def best_of_run(rank: Float[Tensor, "B N"], open_: Bool[Tensor, "B N"]) -> Float[Tensor, "B N"]:
    """At every open position the best rank in its run of neighbouring open positions."""
    closed_before = ~torch.nn.functional.pad(open_, (1, 0))[:, :-1]
    run = (open_ & closed_before).cumsum(-1)  # 0 is before the first run and is never read
    best = torch.full_like(torch.nn.functional.pad(rank, (1, 0)), -torch.inf)
    best = best.scatter_reduce(-1, run, rank.masked_fill(~open_, -torch.inf), "amax")
    return best.gather(-1, run)


@DECODERS.register(
    "credit",
    summary="threshold decoding with credit for tokens that were predicted before (dInfer)",
    main="threshold",
)
@settings
class Credit(Threshold):
    """Threshold decoding on logits + weight·log(1 + C), C credits past top-1s (2510.08666)."""

    whole_distribution: ClassVar[bool] = True

    weight: float = Field(0.7, ge=0, description="of the credit; 0 is threshold decoding")
    decay: float = Field(0.8, ge=0, le=1, description="C ← decay·C in every pass")
    boost: float = Field(0.2, ge=0, description="then C[top-1] += p^boost")

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        whole = signals.whole
        past = canvas.memory.get("credit")
        if past is None:
            credit = torch.zeros_like(whole.logits, dtype=torch.float32)
        else:
            credit = past * self.decay
        earned = signals.confidence**self.boost * open_positions(canvas)
        credit.scatter_add_(-1, signals.tokens.unsqueeze(-1), earned.unsqueeze(-1))
        credited, _ = summarised(replace(whole, bonus=credit, weight=self.weight), signals.last)
        return super().step(remember(canvas, credit=credit), credited, info, space)

"""dInfer's parallel decoders (arXiv 2510.08666): spread commitments out, or credit constancy."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    Discrete,
    Prediction,
    open_positions,
    remember,
    require_probability,
)
from xpredflow.decoders.threshold import Threshold, sure_enough
from xpredflow.engine.signals import summarised
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@dataclass(frozen=True)
class Hierarchy(Discrete):
    """Commit each open run's surest if c > low_threshold, and all c ≥ threshold (2510.08666)."""

    name: ClassVar[str] = "hierarchy"
    threshold: float = 0.92
    low_threshold: float = 0.4  # published values are 0.4 to 0.62

    def __post_init__(self) -> None:
        super().__post_init__()
        require_probability("threshold", self.threshold)
        require_probability("low_threshold", self.low_threshold)

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_, rank = open_positions(canvas), prediction.rank
        leading = open_ & (rank == best_of_run(rank, open_)) & (rank > self.low_threshold)
        return leading | sure_enough(rank, open_, self.threshold)


def best_of_run(rank: Float[Tensor, "B N"], open_: Bool[Tensor, "B N"]) -> Float[Tensor, "B N"]:
    """At every open position the best rank in its run of neighbouring open positions."""
    closed_before = ~torch.nn.functional.pad(open_, (1, 0))[:, :-1]
    run = (open_ & closed_before).cumsum(-1)  # 0 is before the first run and is never read
    best = torch.full_like(torch.nn.functional.pad(rank, (1, 0)), -torch.inf)
    best = best.scatter_reduce(-1, run, rank.masked_fill(~open_, -torch.inf), "amax")
    return best.gather(-1, run)


@dataclass(frozen=True)
class Credit(Threshold):
    """Threshold decoding on logits + weight·log(1 + C), C credits past top-1s (2510.08666)."""

    name: ClassVar[str] = "credit"
    weight: float = 0.7  # 0 is threshold decoding
    decay: float = 0.8  # C ← decay·C in every pass
    boost: float = 0.2  # then C[top-1] += p^boost

    def __post_init__(self) -> None:
        super().__post_init__()
        require_probability("decay", self.decay)
        for name in ("weight", "boost"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is {getattr(self, name)}: give a number ≥ 0")

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        credit = canvas.memory.get("credit", torch.zeros_like(signals.logits)) * self.decay
        earned = signals.confidence**self.boost * open_positions(canvas)
        credit = credit.scatter_add(-1, signals.tokens.unsqueeze(-1), earned.unsqueeze(-1))
        credited = summarised(signals.logits + self.weight * credit.log1p(), signals.last)
        return super().step(remember(canvas, credit=credit), credited, info, space)

"""Fast-dLLM's parallel decoders (arXiv 2505.22618): as many positions as are sure enough."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    Discrete,
    Prediction,
    open_positions,
    require_probability,
    top_ranked,
)
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Signals, StepInfo


@dataclass(frozen=True)
class Threshold(Discrete):
    """Commit every position with c ≥ threshold, and always the surest one."""

    name: ClassVar[str] = "threshold"
    threshold: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        require_probability("threshold", self.threshold)

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        return sure_enough(prediction.rank, open_positions(canvas), self.threshold)


def sure_enough(
    rank: Float[Tensor, "B N"], open_: Bool[Tensor, "B N"], threshold: float
) -> Bool[Tensor, "B N"]:
    """Open positions ranked at least `threshold`, and always the best one: decoding goes on."""
    one = torch.ones_like(rank[:, 0], dtype=torch.long)
    return top_ranked(rank, open_, one) | (open_ & (rank >= threshold))


@dataclass(frozen=True)
class Factor(Discrete):
    """Commit the n surest positions for the largest n with c₍ₙ₎ ≥ 1 − factor/(n + 1)."""

    name: ClassVar[str] = "factor"
    factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.factor > 0:
            raise InputError(f"factor is {self.factor}: give a number > 0 (Fast-dLLM uses 1)")

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_ = open_positions(canvas)
        ranked = prediction.rank.masked_fill(~open_, -torch.inf).sort(-1, descending=True).values
        n = torch.arange(1, ranked.shape[1] + 1, device=ranked.device)
        # confidences fall and the bound rises with n: the positions that pass are a prefix
        quota = (ranked >= 1 - self.factor / (n + 1)).sum(-1)
        return top_ranked(prediction.rank, open_, quota.clamp(min=1))

"""Fast-dLLM's parallel decoders (arXiv 2505.22618): as many positions as are sure enough."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from xpredflow.decoders.discrete import Discrete, Prediction, open_positions, top_ranked
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Moment, Signals


@dataclass(frozen=True)
class Threshold(Discrete):
    """Commit every position with c ≥ threshold, and always the surest one."""

    name: ClassVar[str] = "threshold"
    threshold: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.threshold <= 1:
            raise InputError(f"threshold is {self.threshold}: give a probability between 0 and 1")

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, moment: Moment
    ) -> Bool[Tensor, "B N"]:
        one = torch.ones_like(moment.step)
        surest = top_ranked(prediction.rank, open_positions(canvas), one)
        return surest | (prediction.rank >= self.threshold)


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
        self, canvas: Canvas, prediction: Prediction, signals: Signals, moment: Moment
    ) -> Bool[Tensor, "B N"]:
        open_ = open_positions(canvas)
        ranked = prediction.rank.masked_fill(~open_, -torch.inf).sort(-1, descending=True).values
        n = torch.arange(1, ranked.shape[1] + 1, device=ranked.device)
        # confidences fall and the bound rises with n: the positions that pass are a prefix
        quota = (ranked >= 1 - self.factor / (n + 1)).sum(-1)
        return top_ranked(prediction.rank, open_, quota.clamp(min=1))

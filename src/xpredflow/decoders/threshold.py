"""Fast-dLLM's parallel decoders (arXiv 2505.22618): as many positions as are sure enough."""

from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from xpredflow.decoders.discrete import (
    Discrete,
    Prediction,
    greedy,
    open_positions,
    surest,
    top_ranked,
)
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Signals, StepInfo


@DECODERS.register(
    "threshold",
    summary="commits everything whose confidence reaches a threshold, at least one (Fast-dLLM)",
    main="threshold",
)
@settings
class Threshold(Discrete):
    """Commit every position with c ≥ threshold, and always the surest one."""

    summaries_only = property(greedy)
    threshold: float = Field(0.9, ge=0, le=1, description="commit where c reaches this")

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        return sure_enough(prediction, open_positions(canvas), self.threshold)


def sure_enough(
    prediction: Prediction, open_: Bool[Tensor, "B N"], threshold: float
) -> Bool[Tensor, "B N"]:
    """Open positions with c ≥ `threshold`, and always the surest one: decoding goes on."""
    return surest(prediction.log_odds, open_) | (open_ & (prediction.confidence >= threshold))


@DECODERS.register(
    "factor",
    summary="commits the n surest for the largest n with c ≥ 1 − f/(n+1) (Fast-dLLM)",
    main="factor",
)
@settings
class Factor(Discrete):
    """Commit the n surest positions for the largest n with c₍ₙ₎ ≥ 1 − factor/(n + 1).

    Fast-dLLM's code differs from its paper at the end: where that leaves a single position open, it
    commits this one too, however unsure. `ending` names which of them is followed.
    """

    summaries_only = property(greedy)
    factor: float = Field(1.0, gt=0, description="f of the bound; Fast-dLLM uses 1")
    ending: Literal["code", "paper"] = Field(
        "code", description="code: a single position that would be left is committed too"
    )

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_ = open_positions(canvas)
        falling = prediction.confidence.masked_fill(~open_, -torch.inf)
        ranked = falling.sort(-1, descending=True).values
        n = torch.arange(1, ranked.shape[1] + 1, device=ranked.device)
        # confidences fall and the bound rises with n: the positions that pass are a prefix
        quota = (ranked >= 1 - self.factor / (n + 1)).sum(-1).clamp(min=1)
        if self.ending == "code":
            quota = quota + (quota == open_.sum(-1) - 1)
        return top_ranked(prediction.log_odds, open_, quota)

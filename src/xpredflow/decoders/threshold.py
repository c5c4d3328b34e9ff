"""Fast-dLLM's parallel decoders (arXiv 2505.22618): as many positions as are sure enough."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    Discrete,
    Prediction,
    open_positions,
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

    threshold: float = Field(0.9, ge=0, le=1, description="commit where c reaches this")

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

    factor: float = Field(1.0, gt=0, description="f of the bound; Fast-dLLM uses 1")
    ending: Literal["code", "paper"] = Field(
        "code", description="code: a single position that would be left is committed too"
    )

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_ = open_positions(canvas)
        ranked = prediction.rank.masked_fill(~open_, -torch.inf).sort(-1, descending=True).values
        n = torch.arange(1, ranked.shape[1] + 1, device=ranked.device)
        # confidences fall and the bound rises with n: the positions that pass are a prefix
        quota = (ranked >= 1 - self.factor / (n + 1)).sum(-1).clamp(min=1)
        if self.ending == "code":
            quota = quota + (quota == open_.sum(-1) - 1)
        return top_ranked(prediction.rank, open_, quota)

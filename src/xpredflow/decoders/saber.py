"""Saber (arXiv 2510.18165): the bar is the mean of past commitments; drops are taken back."""

import torch
from jaxtyping import Bool
from torch import Tensor

from xpredflow.decoders.discrete import (
    Draft,
    Prediction,
    committed_positions,
    greedy,
    open_positions,
    recall,
    top_ranked,
)
from xpredflow.decoders.revising import Revising
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Signals, StepInfo


@DECODERS.register(
    "saber",
    summary="commits above the mean of past commitments, takes sudden drops back (Saber)",
    main="n",
)
@settings
class Saber(Revising):
    """Commit c above the mean of past commitments, open the largest drops of c again (2510.18165).

    Of k commitments max(n/2, ⌈k/8⌉) are opened again, but always fewer than k.
    """

    summaries_only = property(greedy)
    n: int = Field(2, ge=1, description="at least so many are committed per pass")

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_, past = open_positions(canvas), recall(canvas, "commitment")
        count = (past > 0).sum(-1, keepdim=True)
        bar = torch.where(count > 0, past.sum(-1, keepdim=True) / count.clamp(min=1), 1.0)
        above = open_ & (prediction.confidence > bar)
        surest = top_ranked(prediction.log_odds, open_, self.n)
        return torch.where(above.sum(-1, keepdim=True) < self.n, surest, above)

    def take_back(
        self, canvas: Canvas, draft: Draft, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        k = draft.chosen.sum(-1)
        quota = ((k + 7) // 8).clamp(min=self.n // 2)
        quota = torch.minimum(quota, k - 1)
        drop = recall(canvas, "confidence") - draft.prediction.confidence
        fallen = top_ranked(drop, committed_positions(canvas), quota)
        return fallen & open_positions(canvas).any(-1, keepdim=True)

    def notes(self, canvas: Canvas, draft: Draft, info: StepInfo) -> dict[str, Tensor]:
        confidence = draft.prediction.confidence
        past = recall(canvas, "commitment")
        commitment = torch.where(draft.chosen, confidence, past)
        return {"confidence": confidence, "commitment": commitment}

"""WINO (arXiv 2507.18578): draft widely, verify every draft without its own token, take it back."""

from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from xpredflow.decoders.discrete import (
    Draft,
    Prediction,
    committed_positions,
    greedy,
    open_positions,
    top_ranked,
)
from xpredflow.decoders.revising import Revising
from xpredflow.decoders.threshold import sure_enough
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Signals, StepInfo


@DECODERS.register(
    "wino",
    summary="commits widely, verifies each token in the same pass and takes doubts back (WINO)",
    main="threshold",
)
@settings
class Wino(Revising):
    """Commit c ≥ threshold, open again what its shadow gives less than threshold_back (2507.18578).

    The shadows are read in the same pass, which makes it longer: `Decoded.shadow_positions`.
    """

    shadows: ClassVar[bool] = True
    summaries_only = property(greedy)
    threshold: float = Field(
        0.6, ge=0, le=1, description="of the draft; published values are 0.6 to 0.8"
    )
    threshold_back: float = Field(0.9, ge=0, le=1, description="below this a draft is taken back")

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        return sure_enough(prediction, open_positions(canvas), self.threshold)

    def take_back(
        self, canvas: Canvas, draft: Draft, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        if signals.shadow is None:
            raise ValueError("WINO needs the signals of its shadows: run it in the engine")
        # end tokens that are ranked last are still verified by their probability
        chance = signals.shadow.probability(canvas.tokens)
        doubted = committed_positions(canvas) & ~draft.chosen & (chance < self.threshold_back)
        # fewer than the pass before committed, and none beside a single commitment: it ends
        before = canvas.memory.get("accepted", torch.zeros_like(info.step))
        worst = top_ranked(-chance, doubted, (before - 1).clamp(min=0))
        return worst & (draft.chosen.sum(-1, keepdim=True) > 1)

    def notes(self, canvas: Canvas, draft: Draft, info: StepInfo) -> dict[str, Tensor]:
        return {"accepted": draft.chosen.sum(-1)}

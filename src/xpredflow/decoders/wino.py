"""WINO (arXiv 2507.18578): draft widely, verify every draft without its own token, take it back."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from xpredflow.decoders.discrete import (
    Draft,
    Prediction,
    committed_positions,
    open_positions,
    require_probability,
    top_ranked,
)
from xpredflow.decoders.revising import Revising
from xpredflow.decoders.threshold import sure_enough
from xpredflow.types import Canvas, Signals, StepInfo


@dataclass(frozen=True)
class Wino(Revising):
    """Commit c ≥ threshold, open again what its shadow gives less than threshold_back (2507.18578).

    The shadows are read in the same pass, which makes it longer: `Decoded.shadow_positions`.
    """

    name: ClassVar[str] = "wino"
    shadows: ClassVar[bool] = True
    threshold: float = 0.6  # of the draft; published values are 0.6 to 0.8
    threshold_back: float = 0.9  # below this a draft is taken back

    def __post_init__(self) -> None:
        super().__post_init__()
        require_probability("threshold", self.threshold)
        require_probability("threshold_back", self.threshold_back)

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        return sure_enough(prediction.rank, open_positions(canvas), self.threshold)

    def take_back(
        self, canvas: Canvas, draft: Draft, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        if signals.shadow is None:
            raise ValueError("WINO needs the signals of its shadows: run it in the engine")
        # end tokens that are ranked last are still verified by their probability
        chance = replace(signals.shadow, last=()).rank_of(canvas.tokens)
        doubted = committed_positions(canvas) & ~draft.chosen & (chance < self.threshold_back)
        # fewer than the pass before committed, and none beside a single commitment: it ends
        before = canvas.memory.get("accepted", torch.zeros_like(info.step))
        worst = top_ranked(-chance, doubted, (before - 1).clamp(min=0))
        return worst & (draft.chosen.sum(-1, keepdim=True) > 1)

    def notes(self, canvas: Canvas, draft: Draft, info: StepInfo) -> dict[str, Tensor]:
        return {"accepted": draft.chosen.sum(-1)}

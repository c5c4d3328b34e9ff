"""Mask prediction, LLaDA's decoder (arXiv 2502.09992): an even quota per pass, never taken back."""

from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    Discrete,
    Prediction,
    even_quota,
    greedy,
    open_positions,
    top_ranked,
    uniform_draws,
)
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Signals, StepInfo

Ranking = Literal["low_confidence", "random", "margin", "entropy"]


@DECODERS.register(
    "mask",
    summary="mask prediction: an even share of the response is committed per pass (LLaDA)",
    main="remasking",
)
@settings
class MaskPrediction(Discrete):
    """Commit the best-ranked share of the response in every pass, as LLaDA does."""

    remasking: Ranking = Field("low_confidence", description="how positions are ranked")

    @property
    def summaries_only(self) -> bool:
        """Entropies need whole distributions, and so do draws."""
        return greedy(self) and self.remasking != "entropy"

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        rank = self._rank(canvas, prediction, signals, info)
        return top_ranked(rank, open_positions(canvas), even_quota(canvas.frozen, info))

    def _rank(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Float[Tensor, "B N"]:
        match self.remasking:
            case "margin":
                return signals.margin
            case "entropy":
                return -signals.entropy
            case "random":
                return uniform_draws(canvas, info)
            case _:
                return prediction.log_odds

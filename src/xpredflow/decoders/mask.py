"""Mask prediction, LLaDA's decoder (arXiv 2502.09992): an even quota per pass, never taken back."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import Discrete, Prediction, even_quota, open_positions, top_ranked
from xpredflow.errors import unknown_name
from xpredflow.randomness import numpy_generator
from xpredflow.types import Canvas, Moment, Signals

Ranking = Literal["low_confidence", "random", "margin", "entropy"]


@dataclass(frozen=True)
class MaskPrediction(Discrete):
    """Commit the best-ranked share of the response in every pass, as LLaDA does."""

    name: ClassVar[str] = "mask"
    remasking: Ranking = "low_confidence"  # how positions are ranked

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.remasking not in get_args(Ranking):
            raise unknown_name("remasking", str(self.remasking), get_args(Ranking))

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, moment: Moment
    ) -> Bool[Tensor, "B N"]:
        rank = self._rank(prediction, signals, moment)
        return top_ranked(rank, open_positions(canvas), even_quota(canvas.frozen, moment))

    def _rank(
        self, prediction: Prediction, signals: Signals, moment: Moment
    ) -> Float[Tensor, "B N"]:
        match self.remasking:
            case "margin":
                return signals.margin
            case "entropy":
                return -signals.entropy
            case "random":
                n = signals.log_total.shape[1]
                draws = [numpy_generator(moment, i).random(n) for i in range(len(moment.rows))]
                return torch.stack([torch.from_numpy(d) for d in draws]).to(signals.log_total)
            case _:
                return prediction.rank

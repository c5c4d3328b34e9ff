"""Soft masking (SM, arXiv 2510.17206): retained masks carry a hint of the last prediction."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.decoders.discrete import open_positions
from xpredflow.decoders.mask import MaskPrediction
from xpredflow.engine.signals import mixture
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@dataclass(frozen=True)
class SoftMasking(MaskPrediction):
    """Mask prediction whose open positions are blended with their top-k predicted embeddings.

    The blend is recomputed in every pass and never accumulates. ω_a and ω_b are SM's initial
    values; ω_s starts its fine-tuning at 0, which is plain mask prediction, so it is 1 here.
    """

    name: ClassVar[str] = "soft"
    k: int = 3  # predicted tokens in the blend: 1 for code, 3 for language in the paper
    omega_s: float = 1.0
    omega_a: float = 6.66
    omega_b: float = -0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1:
            raise InputError(f"k is {self.k}: give the number of blended tokens, at least 1")
        if not 0 <= self.omega_s <= 1:
            raise InputError(f"omega_s is {self.omega_s}: give a share between 0 and 1")

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        canvas, event = super().step(canvas, signals, info, space)
        share = self.softness(signals.entropy).unsqueeze(-1)
        hint = mixture(signals, space.table, self.k)
        soft = (1 - share) * space.mask + share * hint
        retained = open_positions(canvas).unsqueeze(-1)
        return canvas.update(state=torch.where(retained, soft, canvas.state)), event

    def softness(self, entropy: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """The share of the hint in each open position."""
        return softness(entropy, self.omega_s, self.omega_a, self.omega_b)


def softness(
    entropy: Float[Tensor, "B N"],
    omega_s: float | Float[Tensor, ""],
    omega_a: float | Float[Tensor, ""],
    omega_b: float | Float[Tensor, ""],
) -> Float[Tensor, "B N"]:
    """λ = ω_s · σ(ω_a(−H − ω_b)): the surer the prediction, the less mask is left."""
    return omega_s * torch.sigmoid(omega_a * (-entropy - omega_b))

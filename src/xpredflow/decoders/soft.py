"""Soft masking (SM, arXiv 2510.17206): retained masks carry a hint of the last prediction."""

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.decoders.discrete import open_positions
from xpredflow.decoders.mask import MaskPrediction
from xpredflow.engine.signals import mixture
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@DECODERS.register(
    "soft",
    summary="mask prediction whose open positions carry a soft hint of the prediction (SM)",
    main="k",
)
@settings
class SoftMasking(MaskPrediction):
    """Mask prediction whose open positions are blended with their top-k predicted embeddings.

    The blend is recomputed in every pass and never accumulates. ω_a and ω_b are SM's initial
    values; ω_s starts its fine-tuning at 0, which is plain mask prediction, so it is 1 here.
    """

    k: int = Field(
        3, ge=1, description="tokens in the blend: 1 for code, 3 for language in the paper"
    )
    omega_s: float = Field(1.0, ge=0, le=1, description="the largest share of the hint")
    omega_a: float = Field(6.66, description="how steeply the share falls with the entropy")
    omega_b: float = Field(-0.75, description="minus the entropy where half of the share is left")

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

"""ReMix (arXiv 2602.22868): open positions carry a mixture of tokens while it does not waver."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    kept_distribution,
    kept_divergence,
    open_positions,
    remember,
)
from xpredflow.decoders.threshold import Threshold
from xpredflow.engine.signals import weighted
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo

LEAST_SHARE, MOST_SHARE = 0.2, 0.9


@DECODERS.register(
    "remix",
    summary="threshold decoding whose steady open positions carry a mixture (ReMix)",
    main="threshold",
)
@settings
class ReMix(Threshold):
    """Threshold decoding; open positions are (1−β)m + β·mixture, m if they waver (2602.22868)."""

    whole_distribution: ClassVar[bool] = True

    beta: float = Field(
        0.5, ge=0, le=1, description="share of the mixture in the state; 0 is threshold decoding"
    )
    js_threshold: float = Field(
        0.3,
        ge=0,
        allow_inf_nan=True,
        description="in nats; a larger JS divergence to the last pass drops the mixture",
    )
    k: int = Field(50, ge=1, description="at most so many tokens in the mixture")

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        canvas, event = super().step(canvas, signals, info, space)
        moved = kept_divergence(divergence, canvas, signals)
        # a block's first pass has no history that could be steady
        steady = (moved <= self.js_threshold) & (info.step > 0).unsqueeze(-1)
        share = (self.beta * steady).unsqueeze(-1)
        soft = (1 - share) * space.mask + share * self.mixed(signals, space)
        retained = open_positions(canvas).unsqueeze(-1)
        canvas = canvas.update(state=torch.where(retained, soft, canvas.state))
        return remember(canvas, **kept_distribution(signals)), event

    def mixed(self, signals: Signals, space: Space) -> Float[Tensor, "B N E"]:
        """Σ p·e over the likeliest tokens, the rest of the probability at m.

        Tokens count until their sum exceeds clip(2·p_max, 0.2, 0.9); the first always does.
        """
        whole = signals.whole
        k = min(self.k, whole.logits.shape[-1])
        top, tokens = whole.map(lambda z: tuple(z.topk(k)))
        top = (top - signals.log_total.unsqueeze(-1)).exp()
        bound = (2 * top[..., :1]).clamp(LEAST_SHARE, MOST_SHARE)
        kept = top.cumsum(-1) <= bound
        kept[..., 0] = True
        weights = top * kept
        return (
            weighted(weights, tokens, space.table)
            + (1 - weights.sum(-1, keepdim=True)) * space.mask
        )


def divergence(log_p: Float[Tensor, "P V"], log_q: Float[Tensor, "P V"]) -> Float[Tensor, " P"]:
    """Jensen-Shannon divergence in nats, from log-probabilities."""

    def minus_entropy(x: Tensor) -> Tensor:
        return torch.xlogy(x, x).sum(-1)

    p, q = log_p.exp(), log_q.exp()
    return (minus_entropy(p) + minus_entropy(q)) / 2 - minus_entropy((p + q) / 2)

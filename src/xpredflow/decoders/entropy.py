"""Parallel decoders that trust low entropy: dParallel's threshold and the EB-sampler's bound."""

from jaxtyping import Bool
from torch import Tensor

from xpredflow.decoders.discrete import Discrete, Prediction, open_positions, surest
from xpredflow.engine.signals import jointly_sure
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Signals, StepInfo


@DECODERS.register(
    "entropy",
    summary="commits everything whose entropy is at most a threshold, at least one (dParallel)",
    main="threshold",
)
@settings
class EntropyThreshold(Discrete):
    """Commit every position with H ≤ threshold, and always the lowest (dParallel, 2509.26488)."""

    threshold: float = Field(
        0.5, ge=0, allow_inf_nan=True, description="in nats; dParallel uses 0.45 on MBPP"
    )

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_, entropy = open_positions(canvas), signals.entropy
        return surest(-entropy, open_) | (open_ & (entropy <= self.threshold))


@DECODERS.register(
    "eb",
    summary="commits the lowest entropies while ΣH − max H stays within a bound (EB-sampler)",
    main="gamma",
)
@settings
class EntropyBounded(Discrete):
    """Commit the lowest entropies while ΣH − max H ≤ gamma (EB-sampler, 2505.24857)."""

    gamma: float = Field(
        0.1,
        ge=0,
        allow_inf_nan=True,
        description="in nats; what the committed tokens may depend on each other",
    )

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        return jointly_sure(signals.entropy, open_positions(canvas), self.gamma)

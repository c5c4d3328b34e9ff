"""Parallel decoders that trust low entropy: dParallel's threshold and the EB-sampler's bound."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool
from torch import Tensor

from xpredflow.decoders.discrete import Discrete, Prediction, open_positions
from xpredflow.decoders.threshold import sure_enough
from xpredflow.engine.signals import jointly_sure
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Signals, StepInfo


@dataclass(frozen=True)
class EntropyThreshold(Discrete):
    """Commit every position with H ≤ threshold, and always the lowest (dParallel, 2509.26488)."""

    name: ClassVar[str] = "entropy"
    threshold: float = 0.5  # in nats; dParallel uses 0.45 on MBPP

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.threshold >= 0:
            raise InputError(f"threshold is {self.threshold}: give an entropy ≥ 0 in nats")

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        return sure_enough(-signals.entropy, open_positions(canvas), -self.threshold)


@dataclass(frozen=True)
class EntropyBounded(Discrete):
    """Commit the lowest entropies while ΣH − max H ≤ gamma (EB-sampler, 2505.24857)."""

    name: ClassVar[str] = "eb"
    gamma: float = 0.1  # in nats; what the committed tokens may depend on each other

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.gamma >= 0:
            raise InputError(f"gamma is {self.gamma}: give an entropy ≥ 0 in nats")

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        return jointly_sure(signals.entropy, open_positions(canvas), self.gamma)

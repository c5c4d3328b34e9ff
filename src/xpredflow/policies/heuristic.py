"""Step-size policies: which fraction a of its remaining distance each position travels."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.types import Action, Signals, StepInfo


@dataclass(frozen=True)
class Constant:
    """The same fraction everywhere: `constant:1/16`."""

    name: ClassVar[str] = "constant"
    fraction: float = 1 / 16

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        return Action(torch.full_like(progress, self.fraction))


@dataclass(frozen=True)
class Confidence:
    """Progress becomes confidence, t ← max(t, c) (Eq. 21): `confidence`."""

    name: ClassVar[str] = "confidence"

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        gain = (signals.confidence - progress).clamp(min=0)
        return Action(_fraction(gain, progress))


@dataclass(frozen=True)
class Uniform:
    """The same Δt everywhere, as in JiT: `uniform` is 1/T of the budget, or `uniform:1/32`."""

    name: ClassVar[str] = "uniform"
    dt: float | None = None

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        dt = 1 / info.budget if self.dt is None else torch.full_like(info.rho, self.dt)
        return Action(_fraction(dt.unsqueeze(-1).expand_as(progress), progress))


@dataclass(frozen=True)
class Jump:
    """All the way where c ≥ θ, else not at all: `jump:0.9`. Threshold decoding as a policy."""

    name: ClassVar[str] = "jump"
    threshold: float = 0.9

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        return Action((signals.confidence >= self.threshold).float())


@dataclass(frozen=True)
class Power:
    """a = c^n, small steps while unsure and nearly a jump when sure: `power:8`."""

    name: ClassVar[str] = "power"
    exponent: float = 8.0

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        return Action(signals.confidence**self.exponent)


def _fraction(dt: Float[Tensor, "B N"], progress: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
    """a with Δt = a(1 − t); nothing is left to travel at t = 1."""
    rest = 1 - progress
    return torch.where(rest > 0, dt / rest.clamp(min=1e-9), torch.zeros_like(rest)).clamp(max=1.0)

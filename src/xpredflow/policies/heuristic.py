"""Step-size policies: which fraction a of its remaining distance each position travels."""

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.registry import POLICIES
from xpredflow.settings import Field, settings
from xpredflow.types import Action, Signals, StepInfo


@POLICIES.register("constant", summary="the same fraction of the rest everywhere: constant:1/16")
@settings
class Constant:
    """The same fraction everywhere: `constant:1/16`."""

    fraction: float = Field(1 / 16, gt=0, le=1, description="a, of the remaining distance")

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        return Action(torch.full_like(progress, self.fraction))


@POLICIES.register("confidence", summary="progress becomes confidence, t ← max(t, c)")
@settings
class Confidence:
    """Progress becomes confidence, t ← max(t, c) (Eq. 21): `confidence`."""

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        gain = (signals.confidence - progress).clamp(min=0)
        return Action(_fraction(gain, progress))


@POLICIES.register("uniform", summary="the same Δt everywhere, 1/T or as given: uniform:1/32")
@settings
class Uniform:
    """The same Δt everywhere, as in JiT: `uniform` is 1/T of the budget, or `uniform:1/32`."""

    dt: float | None = Field(None, gt=0, le=1, description="Δt; none: 1/T of the budget")

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        dt = 1 / info.budget if self.dt is None else torch.full_like(info.rho, self.dt)
        return Action(_fraction(dt.unsqueeze(-1).expand_as(progress), progress))


@POLICIES.register("jump", summary="all the way where c ≥ θ, else stay: jump:0.9")
@settings
class Jump:
    """All the way where c ≥ θ, else not at all: `jump:0.9`. Threshold decoding as a policy."""

    threshold: float = Field(0.9, ge=0, le=1, description="θ on the confidence")

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        return Action((signals.confidence >= self.threshold).float())


@POLICIES.register("power", summary="a = c^n: power:8")
@settings
class Power:
    """a = c^n, small steps while unsure and nearly a jump when sure: `power:8`."""

    exponent: float = Field(8.0, ge=0, description="n, of the confidence")

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        return Action(signals.confidence**self.exponent)


def _fraction(dt: Float[Tensor, "B N"], progress: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
    """a with Δt = a(1 − t); nothing is left to travel at t = 1."""
    rest = 1 - progress
    return torch.where(rest > 0, dt / rest.clamp(min=1e-9), torch.zeros_like(rest)).clamp(max=1.0)

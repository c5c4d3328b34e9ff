"""ReMDM (arXiv 2503.00307): ancestral sampling that masks committed tokens again at a rate σ."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    Draft,
    Prediction,
    committed_positions,
    recall,
    uniform_draws,
)
from xpredflow.decoders.revising import Revising
from xpredflow.errors import InputError
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Signals, StepInfo

Strategy = Literal["cap", "rescale", "conf", "loop"]
PUBLISHED_ETA = {"cap": 0.008, "rescale": 0.015, "loop": 0.02}


class Span(NamedTuple):
    """A pass goes from time t to s < t; α is the share that is unmasked by then."""

    t: Float[Tensor, "B 1"]
    alpha_t: Float[Tensor, "B 1"]
    alpha_s: Float[Tensor, "B 1"]

    @property
    def sigma_max(self) -> Float[Tensor, "B 1"]:
        """The largest σ that leaves the schedule as it is: min(1, (1 − α_s)/α_t)."""
        return ((1 - self.alpha_s) / self.alpha_t.clamp(min=1e-9)).clamp(min=0, max=1)


@DECODERS.register(
    "remdm",
    summary="ancestral sampling that masks tokens again: cap, rescale, conf or loop (ReMDM)",
    main="strategy",
)
@settings
class ReMDM(Revising):
    """Mask → token at (α_s − (1−σ)α_t)/(1−α_t), token → mask at σ (2503.00307).

    The schedule takes the whole budget; tokens are drawn, as the sampler is ancestral.
    """

    temperature: float = Field(1.0, ge=0, description="of the token draw; 0 is greedy")
    strategy: Strategy = Field("cap", description="how σ follows from eta and the schedule")
    eta: float | None = Field(
        None, ge=0, le=1, description="none: 0.008 for cap, 0.015 for rescale, 0.02 for loop"
    )
    t_on: float = Field(0.55, gt=0, lt=1, description="loop: σ = eta for t in (t_off, t_on]")
    t_off: float = Field(0.05, gt=0, lt=1, description="loop: the end of that interval")
    alpha_on: float = Field(0.9, gt=0, lt=1, description="loop: α in that interval")

    def __post_init__(self) -> None:
        if self.eta is not None and self.strategy == "conf":
            raise InputError(f"eta is {self.eta} but strategy 'conf' has none: leave eta out")
        if self.t_off >= self.t_on:
            raise InputError(
                f"t_off is {self.t_off} and t_on is {self.t_on}: give 0 < t_off < t_on < 1"
            )

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        span = self.span(info)
        sigma = self.sigma(canvas, committed_positions(canvas), span)
        rate = (span.alpha_s - (1 - sigma) * span.alpha_t) / (1 - span.alpha_t)
        return uniform_draws(canvas, info) < rate

    def take_back(
        self, canvas: Canvas, draft: Draft, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        placed = committed_positions(canvas) & ~draft.chosen
        sigma = self.sigma(canvas, placed, self.span(info))
        # an open position used its draw to be committed: one number serves both questions
        return placed & (uniform_draws(canvas, info) < sigma)

    def notes(self, canvas: Canvas, draft: Draft, info: StepInfo) -> dict[str, Tensor]:
        confidence = draft.prediction.confidence
        return {
            "commitment": torch.where(draft.chosen, confidence, recall(canvas, "commitment")),
            "over": info.is_last,
        }

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Filled at the end of the schedule; before it, only if nothing can be masked again."""
        filled = super().stop(canvas)
        return filled if self.eta == 0 else filled & canvas.memory["over"]

    def span(self, info: StepInfo) -> Span:
        """Time runs from 1 to 0 in equal steps over the budget."""
        t = (1 - info.step / info.budget).unsqueeze(-1)
        s = (1 - (info.step + 1) / info.budget).unsqueeze(-1)
        return Span(t, self.alpha(t), self.alpha(s))

    def alpha(self, t: Float[Tensor, "B 1"]) -> Float[Tensor, "B 1"]:
        """1 − t; in a loop up to alpha_on at t_on, level until t_off, then up to 1."""
        if self.strategy != "loop":
            return 1 - t
        rising = self.alpha_on * (1 - t) / (1 - self.t_on)
        closing = 1 - (1 - self.alpha_on) * t / self.t_off
        level = torch.full_like(t, self.alpha_on)
        return torch.where(t > self.t_on, rising, torch.where(t > self.t_off, level, closing))

    def sigma(
        self, canvas: Canvas, placed: Bool[Tensor, "B N"], span: Span
    ) -> Float[Tensor, "B N"]:
        """The rate at which each position is masked again."""
        if self.strategy == "conf":  # surer commitments are masked less: softmax(−p)·σ_max
            doubt = (-recall(canvas, "commitment")).masked_fill(~placed, -torch.inf)
            return doubt.softmax(-1).masked_fill(~placed, 0.0) * span.sigma_max
        eta = PUBLISHED_ETA[self.strategy] if self.eta is None else self.eta
        rate = eta * span.sigma_max if self.strategy == "rescale" else span.sigma_max.clamp(max=eta)
        if self.strategy == "loop":
            rate = rate * ((span.t > self.t_off) & (span.t <= self.t_on))
        return rate.expand_as(canvas.progress)

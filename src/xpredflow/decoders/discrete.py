"""What the discrete decoders share: positions are open or committed, nothing in between."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.randomness import torch_generator
from xpredflow.types import Canvas, Event, Moment, Signals, Space


class Prediction(NamedTuple):
    """The token each position would be committed to, and how positions are ranked for it."""

    tokens: Int[Tensor, "B N"]
    rank: Float[Tensor, "B N"]


def open_positions(canvas: Canvas) -> Bool[Tensor, "B N"]:
    """Positions that still wait for their token."""
    return ~canvas.frozen & (canvas.progress < 1)


@dataclass(frozen=True)
class Discrete(ABC):
    """A decoder that commits some open positions per pass; subclasses say which."""

    temperature: float = 0.0  # of the token draw; 0 is greedy

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise InputError(f"temperature is {self.temperature}: give a number ≥ 0 (0 is greedy)")

    @abstractmethod
    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, moment: Moment
    ) -> Bool[Tensor, "B N"]:
        """Which of the open positions to commit in this pass."""

    def step(
        self, canvas: Canvas, signals: Signals, moment: Moment, space: Space
    ) -> tuple[Canvas, Event]:
        """Commit what `choose` names; in the last pass, everything that is still open."""
        open_ = open_positions(canvas)
        prediction = predict(signals, self.temperature, moment)
        chosen = open_ & (
            self.choose(canvas, prediction, signals, moment) | moment.is_last.unsqueeze(-1)
        )
        tokens = torch.where(open_, prediction.tokens, canvas.tokens)
        canvas = canvas.update(
            state=torch.where(chosen.unsqueeze(-1), space.embed(tokens), canvas.state),
            progress=canvas.progress.masked_fill(chosen, 1.0),
            tokens=tokens,
        )
        return canvas, Event(signals, torch.zeros_like(chosen), chosen)

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """A row is done when nothing is open."""
        return ((canvas.progress >= 1) | canvas.frozen).all(-1)

    def finish(self, canvas: Canvas, space: Space) -> Int[Tensor, "B N"]:
        """The committed tokens."""
        return canvas.tokens


def predict(signals: Signals, temperature: float, moment: Moment) -> Prediction:
    """Argmax, or at a temperature LLaDA's Gumbel draw in float64; ranked by its probability."""
    if temperature == 0:
        return Prediction(signals.tokens, signals.rank)
    device = signals.logits.device
    tokens = []
    for i, logits in enumerate(signals.logits.double()):
        draw = torch_generator(moment, i, device)
        noise = torch.rand(logits.shape, generator=draw, dtype=torch.float64, device=device)
        tokens.append((logits - temperature * (-noise.log()).log()).argmax(-1))
    drawn = torch.stack(tokens)
    return Prediction(drawn, signals.rank_of(drawn))


def top_ranked(
    rank: Float[Tensor, "B N"], open_: Bool[Tensor, "B N"], quota: Int[Tensor, " B"]
) -> Bool[Tensor, "B N"]:
    """The `quota` best-ranked open positions of each row; ties go to the left."""
    order = rank.masked_fill(~open_, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    place = torch.empty_like(order).scatter_(
        -1, order, torch.arange(rank.shape[1], device=rank.device).expand_as(order)
    )
    return open_ & (place < quota.unsqueeze(-1))


def even_quota(frozen: Bool[Tensor, "B N"], moment: Moment) -> Int[Tensor, " B"]:
    """How many positions this pass commits when the budget is spread evenly, remainder first."""
    total = (~frozen).sum(-1)
    return total // moment.budget + (moment.step < total % moment.budget)

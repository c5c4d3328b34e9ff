"""What the discrete decoders share: positions are open or committed, nothing in between."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.randomness import numpy_generator, torch_generator
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


class Prediction(NamedTuple):
    """The token each position would be committed to, and how positions are ranked for it."""

    tokens: Int[Tensor, "B N"]
    rank: Float[Tensor, "B N"]


class Draft(NamedTuple):
    """What a pass predicts, and the open positions where that is committed."""

    prediction: Prediction
    chosen: Bool[Tensor, "B N"]


@settings
class Discrete(ABC):
    """A decoder that commits some open positions per pass; subclasses say which."""

    revises: ClassVar[bool] = False  # whether a committed position may still change
    temperature: float = Field(0.0, ge=0, description="of the token draw; 0 is greedy")

    @abstractmethod
    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        """Which of the open positions to commit in this pass."""

    def draft(self, canvas: Canvas, signals: Signals, info: StepInfo) -> Draft:
        """What `choose` names; in the last pass, everything that is still open."""
        prediction = predict(signals, self.temperature, info)
        chosen = self.choose(canvas, prediction, signals, info) | info.is_last.unsqueeze(-1)
        return Draft(prediction, open_positions(canvas) & chosen)

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        """Commit the draft."""
        draft = self.draft(canvas, signals, info)
        event = Event(signals, torch.zeros_like(draft.chosen), draft.chosen)
        return commit(canvas, draft, space), event

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """A row is done when nothing is open."""
        return ~open_positions(canvas).any(-1)

    def finish(self, canvas: Canvas, space: Space) -> Int[Tensor, "B N"]:
        """The committed tokens."""
        return canvas.tokens


def open_positions(canvas: Canvas) -> Bool[Tensor, "B N"]:
    """Positions that still wait for their token."""
    return ~canvas.frozen & (canvas.progress < 1)


def committed_positions(canvas: Canvas) -> Bool[Tensor, "B N"]:
    """Positions that hold a token."""
    return ~canvas.frozen & (canvas.progress >= 1)


def commit(canvas: Canvas, draft: Draft, space: Space) -> Canvas:
    """The chosen positions hold their token; the other open ones show their prediction."""
    shown = torch.where(open_positions(canvas), draft.prediction.tokens, canvas.tokens)
    canvas = canvas.update(progress=canvas.progress.masked_fill(draft.chosen, 1.0), tokens=shown)
    return write(canvas, draft.chosen, shown, space)


def write(
    canvas: Canvas, where: Bool[Tensor, "B N"], tokens: Int[Tensor, "B N"], space: Space
) -> Canvas:
    """These tokens and their embeddings at some positions."""
    return canvas.update(
        state=torch.where(where.unsqueeze(-1), space.embed(tokens), canvas.state),
        tokens=torch.where(where, tokens, canvas.tokens),
    )


def remember(canvas: Canvas, **memory: Tensor) -> Canvas:
    """Carry these tensors to the next pass, rows in front."""
    return canvas.update(memory=canvas.memory | memory)


def recall(canvas: Canvas, name: str) -> Float[Tensor, "B N"]:
    """A number per position from earlier passes; 0 where there was none."""
    return canvas.memory.get(name, torch.zeros_like(canvas.progress))


def predict(signals: Signals, temperature: float, info: StepInfo) -> Prediction:
    """Argmax, or at a temperature LLaDA's Gumbel draw in float64; ranked by its probability."""
    if temperature == 0:
        return Prediction(signals.tokens, signals.rank)
    device = signals.logits.device
    tokens = []
    for i, logits in enumerate(signals.logits.double()):
        draw = torch_generator(info, i, device)
        noise = torch.rand(logits.shape, generator=draw, dtype=torch.float64, device=device)
        tokens.append((logits - temperature * (-noise.log()).log()).argmax(-1))
    drawn = torch.stack(tokens)
    return Prediction(drawn, signals.rank_of(drawn))


def uniform_draws(canvas: Canvas, info: StepInfo) -> Float[Tensor, "B N"]:
    """A number from [0, 1) for every position; independent of the row's neighbours and padding."""
    n = canvas.progress.shape[1]
    draws = [numpy_generator(info, i).random(n) for i in range(len(info.rows))]
    return torch.stack([torch.from_numpy(d) for d in draws]).to(canvas.progress)


def top_ranked(
    rank: Float[Tensor, "B N"], open_: Bool[Tensor, "B N"], quota: Int[Tensor, " B"]
) -> Bool[Tensor, "B N"]:
    """The `quota` best-ranked open positions of each row; ties go to the left."""
    order = rank.masked_fill(~open_, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    place = torch.empty_like(order).scatter_(
        -1, order, torch.arange(rank.shape[1], device=rank.device).expand_as(order)
    )
    return open_ & (place < quota.unsqueeze(-1))


def even_quota(frozen: Bool[Tensor, "B N"], info: StepInfo) -> Int[Tensor, " B"]:
    """How many positions this pass commits when the budget is spread evenly, remainder first."""
    total = (~frozen).sum(-1)
    return total // info.budget + (info.step < total % info.budget)

"""DMax's soft parallel decoding (arXiv 2604.08302): placed tokens stay soft and may all change."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.decoders.discrete import (
    Discrete,
    Prediction,
    commit,
    committed_positions,
    open_positions,
    remember,
)
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@DECODERS.register(
    "dmax",
    summary="places a sure prefix; every placed token stays soft and may still change (DMax)",
    main="threshold",
)
@settings
class DMax(Discrete):
    """Place the longest sure prefix of the open positions, renew all placed ones (2604.08302).

    A placed position holds its present top-1 and is read as c·e + (1 − c)·m, at the norm that its
    parts have on average. A row ends when no token changed or when every c ≥ stop_confidence.
    """

    revises: ClassVar[bool] = True

    threshold: float = Field(
        0.5, ge=0, le=1, description="bound on c in the prefix; published values are 0 to 0.65"
    )
    stop_confidence: float = Field(
        0.9, ge=0, le=1, description="a row ends when every position is as sure"
    )

    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        open_, (_, chance, *_) = open_positions(canvas), prediction
        doubts = (open_ & (chance < self.threshold)).cumsum(-1)
        leftmost = open_ & (open_.cumsum(-1) == 1)
        settled = (signals.confidence >= self.stop_confidence) | canvas.frozen
        # a row that ends here leaves nothing open
        return (open_ & (doubts == 0)) | leftmost | settled.all(-1, keepdim=True)

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        draft = self.draft(canvas, signals, info)
        tokens, placed = draft.prediction.tokens, committed_positions(canvas)
        renewed = placed & (tokens != canvas.tokens)
        canvas = commit(canvas, draft, space)
        canvas = canvas.update(tokens=torch.where(placed, tokens, canvas.tokens))
        soft = soft_token(signals, space)
        held = committed_positions(canvas).unsqueeze(-1)
        canvas = canvas.update(state=torch.where(held, soft, canvas.state))
        sure = (signals.confidence >= self.stop_confidence) | canvas.frozen
        canvas = remember(canvas, done=sure.all(-1) | ~(draft.chosen | renewed).any(-1))
        return canvas, Event(signals, renewed, draft.chosen)

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Nothing changed, or everything is sure."""
        return canvas.memory["done"]


def soft_token(signals: Signals, space: Space) -> Float[Tensor, "B N E"]:
    """c·e + (1 − c)·m for the predicted e, stretched to the norm c·|e| + (1 − c)·|m|."""
    c, token = signals.confidence.unsqueeze(-1), space.embed(signals.tokens)
    mixed = c * token + (1 - c) * space.mask
    norm = c * token.norm(dim=-1, keepdim=True) + (1 - c) * space.mask.norm()
    return mixed * norm / (mixed.norm(dim=-1, keepdim=True) + 1e-6)

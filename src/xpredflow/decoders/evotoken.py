"""EvoToken (arXiv 2601.07351): inputs stay soft mixtures of tokens until their block ends."""

from typing import ClassVar

import torch

from xpredflow.decoders.discrete import (
    commit,
    committed_positions,
    recall,
    remember,
)
from xpredflow.decoders.mask import MaskPrediction
from xpredflow.engine.signals import mixture
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@DECODERS.register(
    "evotoken",
    summary="mask prediction on soft tokens that evolve until their block ends (EvoToken)",
    main="alpha",
)
@settings
class EvoToken(MaskPrediction):
    """Mask prediction on soft inputs; committed tokens give way to surer ones (2601.07351).

    Open: alpha·m + (1 − alpha)·top-k mixture. Committed: the top-k mixture. Hard at the end.
    """

    revises: ClassVar[bool] = True

    k: int = Field(3, ge=1, description="predicted tokens in the mixture")
    alpha: float = Field(0.7, ge=0, le=1, description="share of the mask at open positions")

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        draft = self.draft(canvas, signals, info)
        tokens, confidence, _ = draft.prediction
        held = recall(canvas, "confidence")
        surer = committed_positions(canvas) & (confidence > held)
        replaced = surer & (tokens != canvas.tokens)
        canvas = commit(canvas, draft, space)
        canvas = canvas.update(tokens=torch.where(surer, tokens, canvas.tokens))
        mixed = mixture(signals, space.table, self.k)
        masked = self.alpha * space.mask + (1 - self.alpha) * mixed
        soft = torch.where(committed_positions(canvas).unsqueeze(-1), mixed, masked)
        canvas = canvas.update(state=torch.where(canvas.frozen.unsqueeze(-1), canvas.state, soft))
        canvas = remember(canvas, confidence=torch.where(draft.chosen | surer, confidence, held))
        return canvas, Event(signals, replaced, draft.chosen)

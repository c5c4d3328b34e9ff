"""EvoToken (arXiv 2601.07351): inputs stay soft mixtures of tokens until their block ends."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from xpredflow.decoders.discrete import (
    commit,
    committed_positions,
    recall,
    remember,
    require_probability,
)
from xpredflow.decoders.mask import MaskPrediction
from xpredflow.engine.signals import mixture
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@dataclass(frozen=True)
class EvoToken(MaskPrediction):
    """Mask prediction on soft inputs; committed tokens give way to surer ones (2601.07351).

    Open: alpha·m + (1 − alpha)·top-k mixture. Committed: the top-k mixture. Hard at the end.
    """

    name: ClassVar[str] = "evotoken"
    k: int = 3  # predicted tokens in the mixture
    alpha: float = 0.7  # share of the mask at open positions

    def __post_init__(self) -> None:
        super().__post_init__()
        require_probability("alpha", self.alpha)
        if self.k < 1:
            raise InputError(f"k is {self.k}: give the number of mixed tokens, at least 1")

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        draft = self.draft(canvas, signals, info)
        tokens, rank = draft.prediction
        held = recall(canvas, "confidence")
        surer = committed_positions(canvas) & (rank > held)
        replaced = surer & (tokens != canvas.tokens)
        canvas = commit(canvas, draft, space)
        canvas = canvas.update(tokens=torch.where(surer, tokens, canvas.tokens))
        mixed = mixture(signals, space.table, self.k)
        masked = self.alpha * space.mask + (1 - self.alpha) * mixed
        soft = torch.where(committed_positions(canvas).unsqueeze(-1), mixed, masked)
        canvas = canvas.update(state=torch.where(canvas.frozen.unsqueeze(-1), canvas.state, soft))
        canvas = remember(canvas, confidence=torch.where(draft.chosen | surer, rank, held))
        return canvas, Event(signals, replaced, draft.chosen)

"""Token editing as in LLaDA2.1 (inclusionAI): a placed token is overwritten by a surer one."""

from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from xpredflow.decoders.discrete import (
    commit,
    committed_positions,
    greedy,
    open_positions,
    remember,
    write,
)
from xpredflow.decoders.threshold import Threshold
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@DECODERS.register(
    "editing",
    summary="threshold decoding that overwrites tokens until nothing changes (LLaDA2.1)",
    main="threshold",
)
@settings
class Editing(Threshold):
    """Threshold decoding that also overwrites a token where another has p > edit_threshold.

    When nothing is open it goes on until a pass changes nothing, for max_post_steps at most
    (LLaDA2.1, inclusionAI). With edit_threshold ≥ 1 it is threshold decoding.
    """

    revises: ClassVar[bool] = True

    summaries_only = property(greedy)
    threshold: float = Field(0.95, ge=0, le=1, description="commit where c reaches this")
    edit_threshold: float = Field(
        0.9, ge=0, description="overwrite where another token exceeds this; 1 or more: never"
    )
    max_post_steps: int = Field(16, ge=0, description="passes after everything is filled")

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        draft = self.draft(canvas, signals, info)
        tokens, confidence, _ = draft.prediction
        edited = committed_positions(canvas) & (tokens != canvas.tokens)
        edited &= confidence > self.edit_threshold
        after_filling = ~open_positions(canvas).any(-1)
        spent = canvas.memory.get("post_steps", torch.zeros_like(info.step))
        canvas = write(commit(canvas, draft, space), edited, tokens, space)
        canvas = remember(
            canvas,
            post_steps=spent + after_filling,
            changed=(draft.chosen | edited).any(-1),
        )
        return canvas, Event(signals, edited, draft.chosen)

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Everything is filled, and no further pass would or may change it."""
        filled = super().stop(canvas)
        if self.edit_threshold >= 1:
            return filled
        spent = canvas.memory["post_steps"] >= self.max_post_steps
        return filled & (spent | ~canvas.memory["changed"])

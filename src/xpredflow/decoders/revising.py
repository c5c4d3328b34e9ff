"""Discrete decoders that take tokens back: a committed position may be opened again."""

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from xpredflow.decoders.discrete import Discrete, Draft, commit, committed_positions, remember
from xpredflow.settings import settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@settings
class Revising(Discrete):
    """Commits as any discrete decoder, then opens some positions again; not in the last pass."""

    revises: ClassVar[bool] = True

    @abstractmethod
    def take_back(
        self, canvas: Canvas, draft: Draft, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        """Which committed positions to open again; the draft is on the canvas already."""

    @abstractmethod
    def notes(self, canvas: Canvas, draft: Draft, info: StepInfo) -> dict[str, Tensor]:
        """What later passes need to know of this one."""

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        draft = self.draft(canvas, signals, info)
        canvas = commit(canvas, draft, space)
        taken = committed_positions(canvas) & ~info.is_last.unsqueeze(-1)
        taken &= self.take_back(canvas, draft, signals, info)
        canvas = remember(canvas, **self.notes(canvas, draft, info))
        canvas = canvas.update(
            state=torch.where(taken.unsqueeze(-1), space.mask, canvas.state),
            progress=canvas.progress.masked_fill(taken, 0.0),
        )
        return canvas, Event(signals, taken, draft.chosen & ~taken)

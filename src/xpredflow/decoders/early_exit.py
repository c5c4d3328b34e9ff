"""SchED's early exit (arXiv 2512.02892) around any decoder: stop once the whole span is sure."""

from dataclasses import dataclass
from math import pi
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.decoders.discrete import open_positions, remember
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Decoder, Event, Signals, Space, StepInfo

Schedule = Literal["linear", "cosine", "exp"]


@settings
class ExitRule:
    """A row ends when its mean margin reaches a bound that falls with the budget used up."""

    early_exit: Schedule = Field("linear", description="how the bound falls")
    early_exit_high: float = Field(7.5, ge=0, description="the bound at first, in logits")
    early_exit_low: float = Field(0.0, ge=0, description="the bound at the end of the budget")
    early_exit_slope: float = Field(2.0, gt=0, description="k of the schedule exp, e^(−k·p)")

    def bound(self, p: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
        """τ(p), p being the share of the budget that is used up."""
        match self.early_exit:
            case "linear":
                left = 1 - p
            case "cosine":
                left = (1 + (pi * p).cos()) / 2
            case _:
                left = (-self.early_exit_slope * p).exp()
        return self.early_exit_low + (self.early_exit_high - self.early_exit_low) * left


@dataclass(frozen=True)
class EarlyExit:
    """A decoder that also ends, with the predictions as they are, when all of them are sure."""

    decoder: Decoder
    rule: ExitRule

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        """The decoder's own step; where the row exits, what is open takes its prediction."""
        canvas, event = self.decoder.step(canvas, signals, info, space)
        sure = mean_margin(signals, ~canvas.frozen) >= self.rule.bound(
            (info.step + 1) / info.budget
        )
        exits = sure & ~self.decoder.stop(canvas)
        closed = open_positions(canvas) & exits.unsqueeze(-1)
        canvas = canvas.update(
            state=torch.where(closed.unsqueeze(-1), space.embed(canvas.tokens), canvas.state),
            progress=canvas.progress.masked_fill(closed, 1.0),
        )
        return remember(canvas, exited=exits), event._replace(committed=event.committed | closed)

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Rows that are done, or sure enough to be."""
        return self.decoder.stop(canvas) | self.exited(canvas)

    def exited(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Rows that the decoder itself would have gone on with."""
        return canvas.memory["exited"]

    def finish(self, canvas: Canvas, space: Space) -> Int[Tensor, "B N"]:
        """As the decoder reads its canvas."""
        return self.decoder.finish(canvas, space)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the decoder says of itself: `revises`, `shadows`, `stalled`, ..."""
        if name.startswith("__") or name == "decoder":  # not there yet while it is being copied
            raise AttributeError(name)
        return getattr(self.decoder, name)


def mean_margin(signals: Signals, live: Bool[Tensor, "B N"]) -> Float[Tensor, " B"]:
    """The gap between the best two logits, on average over a row's positions."""
    top = signals.top_probs[..., :2].clamp(min=torch.finfo(torch.float32).tiny).log()
    gap = (top[..., 0] - top[..., 1]) * live
    return gap.sum(-1) / live.sum(-1).clamp(min=1)

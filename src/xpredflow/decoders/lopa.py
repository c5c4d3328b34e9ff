"""LoPA (arXiv 2512.16229): several fill orders are read in one pass, the most promising is kept."""

from dataclasses import replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.decoders.discrete import (
    commit,
    open_positions,
    recall,
    remember,
    top_ranked,
    write,
)
from xpredflow.decoders.threshold import Threshold
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo


@DECODERS.register(
    "lopa",
    summary="reads several fill orders in one pass, goes on with the most promising (LoPA)",
    main="threshold",
)
@settings
class LoPA(Threshold):
    """Threshold decoding that looks ahead (2512.16229).

    After a pass the canvas itself is the anchor; branch j also holds the j-th surest of what is
    still open. All of them are read in the next pass, and it goes on from the one whose open
    positions have the highest mean confidence. The pass is longer: `Decoded.shadow_positions`.
    """

    revises: ClassVar[bool] = False

    branches: int = Field(2, ge=0, le=64, description="fill orders read beside the anchor's")

    def fork(self, canvas: Canvas, space: Space) -> list[Canvas]:
        """The branches; one that has nothing to add is the anchor once more."""
        ahead = recall(canvas, "ahead")
        return [_held(canvas, ahead == j, space) for j in range(1, self.branches + 1)]

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        ahead, options = recall(canvas, "ahead"), [signals, *signals.branches]
        readings = [canvas, *self.fork(canvas, space)]
        promise = torch.stack([_promise(*pair) for pair in zip(readings, options, strict=True)])
        numbers = torch.arange(1, len(options), device=ahead.device).reshape(-1, 1, 1)
        adds = (ahead == numbers).any(-1)
        # one that adds nothing is the anchor but for rounding; of equals the anchor comes first
        promise[1:] = promise[1:].masked_fill(~adds, -torch.inf)
        best = promise.argmax(0)
        filled = (ahead == best.unsqueeze(-1)) & (best > 0).unsqueeze(-1)
        canvas, seen = _held(canvas, filled, space), picked(options, best)
        draft = self.draft(canvas, seen, info)
        canvas = commit(canvas, draft, space)
        event = Event(seen, torch.zeros_like(filled), draft.chosen | filled)
        return remember(canvas, ahead=self._ahead(canvas, draft.prediction.log_odds)), event

    def _ahead(self, canvas: Canvas, rank: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """j at the j-th surest open position, 0 elsewhere; one is left that can be judged."""
        open_ = open_positions(canvas)
        most = (open_.sum(-1) - 1).clamp(min=0)
        counts = [most.clamp(max=j) for j in range(1, self.branches + 1)]
        within = [top_ranked(rank, open_, count) for count in counts]
        number = self.branches + 1 - sum(inside.float() for inside in within)
        return torch.where(within[-1], number, 0.0) if within else torch.zeros_like(rank)


def _held(canvas: Canvas, where: Bool[Tensor, "B N"], space: Space) -> Canvas:
    """The canvas with its predictions committed at some positions."""
    held = canvas.update(progress=canvas.progress.masked_fill(where, 1.0))
    return write(held, where, canvas.tokens, space)


def _promise(canvas: Canvas, signals: Signals) -> Float[Tensor, " B"]:
    """The mean confidence of what is still open: how much the next passes can commit at once."""
    open_ = open_positions(canvas)
    return (signals.confidence * open_).sum(-1) / open_.sum(-1).clamp(min=1)


def picked(options: list[Signals], best: Int[Tensor, " B"]) -> Signals:
    """Of each row the signals of its best canvas."""
    rows = torch.arange(len(best), device=best.device)

    def of(name: str) -> Tensor:
        return torch.stack([getattr(option, name) for option in options])[best, rows]

    first, chosen = options[0], ("top_probs", "top_tokens", "log_total", "log_odds")
    logits = torch.stack([option.whole.logits for option in options])[best, rows]
    return replace(
        first,
        **{name: of(name) for name in chosen},
        distribution=replace(first.whole, logits=logits),
        branches=(),
    )

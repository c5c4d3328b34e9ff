"""Rows of several decoders as one Step: their canvases side by side, padded to the widest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from xpredflow.engine.steps import Decoded, Step
from xpredflow.types import Action, Canvas, Event, Signals, Space

Stack = Callable[[list[Tensor]], Tensor]


@dataclass(frozen=True)
class Settled:
    """A group's share of a pass that counts: what a Step says of its rows."""

    rows: list[int]
    index: list[int]
    positions: Int[Tensor, "G N"]
    canvas: Canvas
    event: Event


def merged(parts: list[Settled], finished: Sequence[Decoded]) -> Step:
    """One Step of all groups; of a single one it is a view, nothing is copied."""
    if len(parts) == 1:
        [part] = parts
        return Step(part.rows, part.index, part.positions, part.canvas, part.event, finished)
    width = max(part.positions.shape[1] for part in parts)

    def stacked(tensors: list[Tensor], filler: int = 0) -> Tensor:
        return torch.cat([_widened(tensor, width, filler) for tensor in tensors])

    canvases, events = [part.canvas for part in parts], [part.event for part in parts]
    return Step(
        rows=[number for part in parts for number in part.rows],
        index=[index for part in parts for index in part.index],
        positions=stacked([part.positions for part in parts], -1),
        canvas=Canvas(
            state=stacked([canvas.state for canvas in canvases]),
            progress=stacked([canvas.progress for canvas in canvases]),
            tokens=stacked([canvas.tokens for canvas in canvases]),
            frozen=stacked([canvas.frozen for canvas in canvases], True),
        ),
        event=Event(
            signals=_signals([event.signals for event in events], stacked),
            reedited=stacked([event.reedited for event in events]),
            committed=stacked([event.committed for event in events]),
            action=_action(events, stacked),
            travelled=stacked([_travelled(event) for event in events]),
        ),
        finished=finished,
    )


def nothing(space: Space) -> Settled:
    """A pass without rows."""
    canvas = Canvas.blank(torch.zeros(0, 0, dtype=torch.bool, device=space.table.device), space)
    none, places = canvas.progress, torch.zeros_like(canvas.tokens)
    signals = Signals(none.new_zeros(0, 0, 4), places.new_zeros(0, 0, 4), none, none)
    return Settled([], [], places, canvas, Event(signals, canvas.frozen, canvas.frozen))


def _signals(signals: list[Signals], stacked: Stack) -> Signals:
    return Signals(
        top_probs=stacked([one.top_probs for one in signals]),
        top_tokens=stacked([one.top_tokens for one in signals]),
        log_total=stacked([one.log_total for one in signals]),
        log_odds=stacked([one.log_odds for one in signals]),
    )


def _action(events: list[Event], stacked: Stack) -> Action | None:
    """The fractions that policies chose, NaN for the rows of a decoder without a policy."""
    if all(event.action is None for event in events):
        return None
    return Action(
        stacked(
            [
                torch.full_like(event.signals.log_odds, torch.nan)
                if event.action is None
                else event.action.fraction
                for event in events
            ]
        )
    )


def _travelled(event: Event) -> Tensor:
    if event.travelled is None:
        return torch.zeros_like(event.signals.log_odds)
    return event.travelled


def _widened(tensor: Tensor, width: int, filler: int) -> Tensor:
    missing = width - tensor.shape[1]
    if not missing:
        return tensor
    return torch.cat(
        (tensor, tensor.new_full((len(tensor), missing, *tensor.shape[2:]), filler)), 1
    )

"""Predictions that no model made: what a policy sees at a given confidence, progress and time."""

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.types import Signals, StepInfo

_BUDGET = 1001  # of the moments below: fine enough for any ρ


def synthetic_signals(confidence: Float[Tensor, "B N"]) -> Signals:
    """Signals with p1 as given; p2 to p4 are 1/2, 1/4 and 1/8 of what p1 leaves, at most p1."""
    p1 = confidence.unsqueeze(-1)
    rest = (1 - p1) * torch.tensor([1 / 2, 1 / 4, 1 / 8])
    top = torch.cat([p1, rest.minimum(p1)], dim=-1)
    tokens = torch.arange(4).expand(top.shape)
    return Signals(top.log(), torch.zeros_like(confidence), top, tokens)


def info_at(rho: Float[Tensor, " B"]) -> StepInfo:
    """Moments at which that share of the budget is used up."""
    step = (rho * (_BUDGET - 1)).round().long()
    return StepInfo(step, torch.full_like(step, _BUDGET), tuple(range(len(step))))

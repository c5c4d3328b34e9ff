"""Predictions that no model made: what a policy sees at a given confidence, progress and time."""

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.policies.beta import BetaNetwork, LearnedPolicy
from xpredflow.types import Signals, StepInfo

SHARES_USED = (0.0, 0.5, 1.0)  # ρ at which a policy is shown
_BUDGET = 1001  # of the moments below: fine enough for any ρ


def synthetic_signals(confidence: Float[Tensor, "B N"]) -> Signals:
    """Signals with p1 as given; p2 to p4 are 1/2, 1/4 and 1/8 of what p1 leaves, at most p1."""
    p1 = confidence.unsqueeze(-1)
    rest = (1 - p1) * torch.tensor([1 / 2, 1 / 4, 1 / 8])
    top = torch.cat([p1, rest.minimum(p1)], dim=-1)
    tokens = torch.arange(4).expand(top.shape)
    return Signals(
        top_probs=top,
        top_tokens=tokens,
        log_total=torch.zeros_like(confidence),
        log_odds=confidence.logit(),
    )


def info_at(rho: Float[Tensor, " B"]) -> StepInfo:
    """Moments at which that share of the budget is used up."""
    step = (rho * (_BUDGET - 1)).round().long()
    return StepInfo(step, torch.full_like(step, _BUDGET), tuple(range(len(step))))


def fractions(
    network: BetaNetwork, confidence: Float[Tensor, " C"], progress: Float[Tensor, " T"], rho: float
) -> Float[Tensor, "C T"]:
    """E[a] over confidence and progress; the other probabilities are synthetic."""
    rows = len(confidence)
    signals = synthetic_signals(confidence.unsqueeze(-1).expand(-1, len(progress)))
    info = info_at(torch.full((rows,), rho))
    return LearnedPolicy(network)(signals, progress.expand(rows, -1), info).fraction

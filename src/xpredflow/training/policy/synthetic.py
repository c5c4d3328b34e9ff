"""Predictions that no model made: what a policy sees at a given confidence, progress and time."""

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.policies import make_policy
from xpredflow.policies.beta import BetaNetwork, LearnedPolicy
from xpredflow.types import Action, Policy, Signals, StepInfo

SHARES_USED = (0.0, 0.5, 1.0)  # ρ at which a policy is shown
HEEDED = 1.5  # the least change of a, as a factor, that counts as looking at something
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
    return _fractions(LearnedPolicy(network), confidence, progress, rho)


def thresholds(
    network: BetaNetwork, progress: Float[Tensor, " T"], rho: float
) -> tuple[Float[Tensor, " T"], Float[Tensor, " T"]]:
    """The commitment threshold and the re-editing margin over progress, at a confidence of 0.9."""
    action = _action(LearnedPolicy(network), torch.tensor([0.9]), progress, rho)
    assert action.commit_threshold is not None
    assert action.reedit_margin is not None
    return action.commit_threshold.flatten(), action.reedit_margin.flatten()


def _fractions(
    policy: Policy, confidence: Float[Tensor, " C"], progress: Float[Tensor, " T"], rho: float
) -> Float[Tensor, "C T"]:
    shape = len(confidence), len(progress)
    return _action(policy, confidence, progress, rho).fraction.reshape(shape)


def _action(
    policy: Policy, confidence: Float[Tensor, " C"], progress: Float[Tensor, " T"], rho: float
) -> Action:
    # a row of its own for each pair: a policy that looks to the left sees the prompt there
    shape = len(confidence), len(progress)
    c, t = confidence.unsqueeze(-1).expand(shape), progress.expand(shape)
    info = info_at(torch.full((c.numel(),), rho))
    return policy(synthetic_signals(c.reshape(-1, 1)), t.reshape(-1, 1), info)


def begun_fractions(
    init: str | None,
    confidence: Float[Tensor, " C"],
    progress: Float[Tensor, " T"],
    rho: float,
) -> Float[Tensor, "C T"] | None:
    """The same of the policy that a training began from; None where it is not there any more."""
    if not init:
        return None
    try:
        policy = make_policy(init)
    except InputError:
        return None
    return _fractions(policy, confidence, progress, rho)


def influence(network: BetaNetwork) -> dict[str, float]:
    """By what factor E[a] changes as each of c, t and ρ goes over its range, on average.

    1 is a policy that ignores it; the others stand still at a grid of values meanwhile.
    """
    c, t, rho = torch.linspace(0.05, 0.99, 16), torch.linspace(0.0, 0.95, 16), (0.0, 0.5, 1.0)
    grid = torch.stack([fractions(network, c, t, share) for share in rho]).log()
    names = {"confidence c": 1, "progress t": 2, "the share ρ of the budget that is used": 0}
    return {
        name: float((grid.amax(dim) - grid.amin(dim)).mean().exp()) for name, dim in names.items()
    }


def ignored(network: BetaNetwork) -> str:
    """What a policy looks at and what it ignores, as a sentence."""
    factors = influence(network)
    seen = [f"{name} (a changes {f:.3g}-fold)" for name, f in factors.items() if f >= HEEDED]
    rest = [f"{name} ({f:.2f}-fold)" for name, f in factors.items() if f < HEEDED]
    said = f"It looks at {' and at '.join(seen)}" if seen else "It looks at nothing"
    return f"{said}; it all but ignores {' and '.join(rest)}." if rest else f"{said}."

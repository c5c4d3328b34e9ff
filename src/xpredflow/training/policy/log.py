"""What a policy's training log says about an update, and what it means when nothing is learned."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.policies.beta import BetaNetwork, to_fraction
from xpredflow.training.policy.grpo import GrpoConfig, Outcomes, Records, beta_at

BINS = 10  # of the confidence
WARN_AFTER = 3  # updates in a row without signal
_SURE = 0.9  # of the largest κ, from which a policy counts as deterministic


def describe_rollouts(outcomes: Outcomes, config: GrpoConfig) -> dict[str, Any]:
    """Rewards, accuracy and passes of an update's rollouts."""
    solved, rewards = outcomes.solved, outcomes.trajectory_rewards(config)
    return {
        "reward": outcomes.total_rewards(config).mean().item(),
        "accuracy": solved.mean().item(),
        "passes_used": outcomes.passes.mean().item(),
        "final_progress": outcomes.mean_progress().mean().item(),
        "mixed": _varied(solved).mean().item(),
        "signal": _varied(rewards).mean().item(),
        "reedits": (outcomes.reedits / outcomes.progress.shape[-1]).mean().item(),
    }


def _varied(x: Float[Tensor, "P G"]) -> Float[Tensor, " P"]:
    """1 for each group whose draws differ."""
    return ((x.amax(1) - x.amin(1)) > 1e-9).float()


@torch.no_grad()
def describe_policy(network: BetaNetwork, records: Records) -> dict[str, Any]:
    """How the policy that made the records acts: by confidence, and how widely it draws."""
    if not len(records):
        return {"action_by_confidence": [None] * BINS, "entropy": None, "kappa": None}
    density = beta_at(network, records.features)
    return {
        "action_by_confidence": action_by_confidence(records),
        "entropy": density.entropy().mean().item(),
        "kappa": (density.concentration1 + density.concentration0).mean().item(),
    }


def action_by_confidence(records: Records) -> list[float | None]:
    """The mean fraction a that was drawn in each tenth of the confidence; None where none was."""
    bins = (records.features[:, 0] * BINS).long().clamp(0, BINS - 1)
    count = torch.zeros(BINS, dtype=torch.float64).index_add_(
        0, bins, torch.ones(len(bins)).double()
    )
    total = torch.zeros(BINS, dtype=torch.float64)
    steps = records.latent if records.latent.ndim == 1 else records.latent[:, 0]
    total.index_add_(0, bins, to_fraction(steps).double())
    return [t / c if c else None for t, c in zip(total.tolist(), count.tolist(), strict=True)]


def why_no_signal(line: dict[str, Any], kappa_max: float) -> str:
    """The likely cause when the draws of every group earn the same, and what to do about it."""
    if line["accuracy"] == 1:
        return "every rollout was right: lower the budget, set speed, or give harder prompts"
    if line["accuracy"] == 0:
        return (
            "no rollout was right: filter the prompts (--answers), raise the budget, or"
            " begin with a policy that works (init)"
        )
    if line["kappa"] is not None and line["kappa"] > _SURE * kappa_max:
        return (
            f"the policy became deterministic (mean κ {line['kappa']:.0f} of at most"
            f" {kappa_max:.0f}): lower kappa_max or lr"
        )
    return "each prompt was always or never solved: raise group, or give other prompts"

"""Group-relative policy optimisation of the step-size policy, from recorded signals alone.

The paper follows GRPO (Shao et al., 2024, arXiv:2402.03300). Nothing here runs a language model.
P prompts per update, G draws of each, N positions of a response, M recorded actions.
"""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.policies.beta import BetaNetwork, joint_log_density
from xpredflow.training.policy.baseline import ValueBaseline
from xpredflow.training.policy.config import GrpoConfig

TOTAL_FLOOR = 0.1  # under 1/3, the deviation of one success in eight: λ counts in constant groups
POSITION_FLOOR = 1e-6  # the paper's GRPO guards against zero alone


@dataclass(frozen=True)
class Records:
    """Every action that had an effect: what the policy saw, drew, and how likely that was.

    `rollout` and `column` say whose position it was: its place among the rollouts (prompt by
    prompt, draw by draw) and in the response.
    """

    features: Float[Tensor, "M F"]
    latent: Float[Tensor, "M *A"]
    log_prob: Float[Tensor, " M"]
    rollout: Int[Tensor, " M"]
    column: Int[Tensor, " M"]

    def __len__(self) -> int:
        return len(self.latent)

    @classmethod
    def join(cls, parts: "list[Records]") -> "Records":
        """All parts, in their order."""
        columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(cls)}
        return cls(**{name: torch.cat(column) for name, column in columns.items()})


@dataclass(frozen=True)
class Outcomes:
    """How the rollouts ended. Positions that were never `decoded` (text ended before) have no t."""

    solved: Float[Tensor, "P G"]
    passes: Float[Tensor, "P G"]
    reedits: Float[Tensor, "P G"]
    progress: Float[Tensor, "P G N"]
    decoded: Bool[Tensor, "P G N"]
    budget: int

    def trajectory_rewards(self, config: GrpoConfig) -> Float[Tensor, "P G"]:
        """What all positions of a rollout share: task reward and speed."""
        solved = self.solved.double()
        saved = config.speed * (1 - self.passes.double() / self.budget)
        return solved + (saved * solved if config.speed_of == "solved" else saved)

    def mean_progress(self) -> Float[Tensor, "P G"]:
        """t_final, averaged over the positions that were decoded."""
        return _mean_where(self.progress.double(), self.decoded, -1).squeeze(-1)

    def total_rewards(self, config: GrpoConfig) -> Float[Tensor, "P G"]:
        """A rollout's reward, averaged over its positions."""
        return self.trajectory_rewards(config) + config.completion * self.mean_progress()


def advantages(outcomes: Outcomes, config: GrpoConfig) -> Float[Tensor, "P G N"]:
    """R_gi less its mean over the G draws, over the deviation that `normalise` names."""
    rewards = outcomes.trajectory_rewards(config)
    t, decoded = outcomes.progress.double(), outcomes.decoded
    ahead = (rewards - rewards.mean(1, keepdim=True)).unsqueeze(-1)
    centred = ahead + config.completion * (t - _mean_where(t, decoded, 1)) * decoded
    if config.normalise == "total":
        spread = outcomes.total_rewards(config).std(1, correction=0).clamp(min=TOTAL_FLOOR)
        return (centred / spread[:, None, None]).float()
    if config.normalise == "position":
        spread = _mean_where(centred.square(), decoded, 1).sqrt().clamp(min=POSITION_FLOOR)
        return (centred / spread).float()
    return centred.float()


def _mean_where(
    x: Float[Tensor, "P G N"], counted: Bool[Tensor, "P G N"], dim: int
) -> Float[Tensor, "P _ _"]:
    return (x * counted).sum(dim, keepdim=True) / counted.sum(dim, keepdim=True).clamp(min=1)


def surrogate(
    log_ratio: Float[Tensor, " M"], advantage: Float[Tensor, " M"], clip: float
) -> Float[Tensor, " M"]:
    """The clipped objective as a loss: −min(r·A, cut(r)·A)."""
    ratio = log_ratio.exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)


def divergence(
    network: BetaNetwork, other: BetaNetwork, features: Float[Tensor, "M F"]
) -> Float[Tensor, " M"]:
    """KL(network ‖ other) of the Beta densities, exactly; of several actions their sum."""
    pair = [beta_at(net, features) for net in (network, other)]
    found = torch.distributions.kl_divergence(*pair)
    return found.sum(-1) if network.sets_thresholds else found


def beta_at(network: BetaNetwork, features: Float[Tensor, "M F"]) -> torch.distributions.Beta:
    """The density of y at each recorded view."""
    mu, kappa = network(features)
    return torch.distributions.Beta(mu * kappa, (1 - mu) * kappa, validate_args=False)


@dataclass(frozen=True)
class Learned:
    """What an update did: cut ratios, and how far it moved from the last and the first policy."""

    clip_share: float
    kl_step: float
    kl_start: float


class Learner:
    """The policy in training, its optimizer, and the policy that training began with."""

    def __init__(self, network: BetaNetwork, start: BetaNetwork, config: GrpoConfig) -> None:
        self.network, self.start, self.config = network, start, config
        self.optimizer = torch.optim.Adam(network.parameters(), lr=config.lr)
        self.baseline = ValueBaseline(network.config.view) if config.baseline == "value" else None

    def update(
        self, records: Records, advantage: Float[Tensor, "P G N"], draw: torch.Generator
    ) -> Learned:
        """Some epochs of clipped steps; every rollout weighs the same, whatever its length."""
        if not len(records):
            return Learned(0.0, 0.0, 0.0)
        before = _copy(self.network)
        gain = advantage.flatten(0, 1)[records.rollout, records.column]
        counts = records.rollout.bincount()
        weight = 1 / (counts[records.rollout] * (counts > 0).sum())
        if self.baseline is not None:
            promised = self.baseline(records.features)
            self.baseline.fit(records.features, gain, weight, draw)
            gain = gain - promised
        clipped = []
        for _ in range(self.config.epochs):
            order = torch.randperm(len(records), generator=draw)
            for chosen in order.chunk(self.config.minibatches):
                clipped.append(self._step(records, gain, weight, chosen))
        with torch.no_grad():
            kl_step, kl_start = (
                (weight * divergence(self.network, other, records.features)).sum().item()
                for other in (before, self.start)
            )
        return Learned(sum(clipped) / len(clipped), kl_step, kl_start)

    def _step(
        self,
        records: Records,
        gain: Float[Tensor, " M"],
        weight: Float[Tensor, " M"],
        chosen: Int[Tensor, " K"],
    ) -> float:
        """One gradient step on some records; the share of them whose ratio was cut."""
        features = records.features[chosen]
        density = joint_log_density(self.network, records.latent[chosen], features)
        log_ratio = density - records.log_prob[chosen]
        loss = surrogate(log_ratio, gain[chosen], self.config.clip)
        if self.config.kl:
            loss = loss + self.config.kl * divergence(self.network, self.start, features)
        self.optimizer.zero_grad()
        # a part's sum stands for the whole: its gradient is scaled up to that of all records
        ((weight[chosen] * loss).sum() * len(records) / len(chosen)).backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_norm)
        self.optimizer.step()
        return ((log_ratio.exp() - 1).abs() > self.config.clip).float().mean().item()


def _copy(network: BetaNetwork) -> BetaNetwork:
    twin = BetaNetwork(network.config)
    twin.load_state_dict(network.state_dict())
    return twin

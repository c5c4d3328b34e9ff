"""The policy that training begins with: a heuristic imitated, a policy from a file, or neither."""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.decoders import POLICIES, make_policy
from xpredflow.errors import InputError
from xpredflow.flow import Rules
from xpredflow.policies.beta import (
    LOG2_A_MIN,
    BetaConfig,
    BetaNetwork,
    expected_fraction,
    load_policy,
    to_fraction,
)
from xpredflow.policies.view import view
from xpredflow.tasks import Problem
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.grpo import Records
from xpredflow.training.policy.rollouts import Setup, acting, roll_out
from xpredflow.training.policy.synthetic import info_at, synthetic_signals
from xpredflow.types import Action, Policy, Signals, StepInfo

_RATE = 3e-3
_BATCH = 2048
_SMALL = 1 / 32  # steps well below this all mean to wait: no effort goes into telling them apart
_NEVER = 0.95  # as far as μ can go
_SYNTHETIC = (64, 64)  # views beside those of rollouts


@dataclass(frozen=True)
class Start:
    """The network that training begins with, and how well it imitates the heuristic.

    `error` is the root mean square of log2 E[a] − log2 a over the watched actions; None where
    there was nothing to imitate.
    """

    network: BetaNetwork
    error: float | None = None


@dataclass(frozen=True)
class Watched:
    """A `teacher` whose choices are noted as latents while `actor` decides what is done."""

    teacher: Policy
    actor: Policy
    view: str = "position"
    thresholds: tuple[float, ...] = ()  # latents of the rules' own, where the policy chooses them

    def __call__(self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo) -> Action:
        target = self.teacher(signals, progress, info).fraction
        s = view(self.view, signals, progress, info.rho)
        done = self.actor(signals, progress, info).fraction
        latent, nothing = to_latent(target), torch.zeros_like(target)
        if self.thresholds:
            latent = torch.stack((latent, *(nothing + z for z in self.thresholds)), dim=-1)
        return Action(done, s, latent, nothing)


def to_latent(fraction: Float[Tensor, "*S"]) -> Float[Tensor, "*S"]:
    """y with a = 2^(−8 + 8y); a fraction of 0 is the smallest there is, 1/256."""
    return 1 - fraction.clamp(min=2.0**LOG2_A_MIN).log2() / LOG2_A_MIN


def threshold_latents(rules: dict[str, Any]) -> tuple[float, float]:
    """y of the rules' commitment threshold and re-editing margin; of none, a value out of reach."""
    commit, margin = (
        rules.get("commit_threshold"),
        rules.get("reedit_margin", Rules().reedit_margin),
    )
    z = _NEVER if commit is None else (-math.log2(max(1 - commit, 1e-6)) - 1) / 9
    return min(max(z, 1 - _NEVER), _NEVER), _NEVER if margin is None else min(margin, _NEVER)


def check_init(init: str) -> None:
    """Refuse a start that cannot be had, before any model is loaded."""
    name = init.partition(":")[0]
    if name not in (*POLICIES, "none"):
        raise InputError(
            f"init is {init!r}: give a heuristic to imitate ({', '.join(POLICIES)}, with its value"
            " as in power:8), learned:FILE, or none"
        )
    if name != "none":
        make_policy(init)


def shaped(config: PolicyConfig) -> PolicyConfig:
    """The config with the network's shape that a start from a file dictates."""
    name, _, path = config.init.partition(":")
    if name != "learned":
        return config
    return replace(config, **asdict(load_policy(Path(path)).network.config))


def begin(setup: Setup, problems: list[Problem]) -> Start:
    """The start that the config asks for; heuristics are watched while they solve `problems`."""
    config = setup.config
    name, _, path = config.init.partition(":")
    if name == "learned":
        return Start(load_policy(Path(path)).network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        network = BetaNetwork(config.part(BetaConfig))
    if name == "none":
        return Start(network)
    teacher = make_policy(config.init)
    rows = dict(enumerate(problems))
    also = threshold_latents(setup.rules) if network.sets_thresholds else ()
    watched = Watched(teacher, teacher, config.view, also)
    seen, _ = roll_out(setup, watched, rows)
    elsewhere = _synthetic(watched, setup)
    _fit(network, [seen, elsewhere], setup)
    # once more where the imitator itself leads: there the teacher would never have gone
    strays, _ = roll_out(setup, replace(watched, actor=acting(setup, network)), rows)
    _fit(network, [seen, strays, elsewhere], setup)
    return Start(network, _error(network, Records.join([seen, strays]), config.init_kappa))


def _synthetic(watched: Watched, setup: Setup) -> Records:
    """The teacher's choices everywhere, also where these prompts happened not to lead."""
    draw = torch.Generator().manual_seed(setup.config.seed)
    c, t = torch.rand(2, *_SYNTHETIC, generator=draw)
    info = info_at(torch.rand(_SYNTHETIC[0], generator=draw))
    action = watched(synthetic_signals(c.clamp(0.01, 0.999)), t, info)
    assert action.features is not None
    assert action.latent is not None
    nothing = torch.zeros(c.numel())
    s, y = action.features.flatten(0, 1), action.latent.flatten(0, 1)
    return Records(s, y, nothing, nothing.long(), nothing.long())


def _fit(network: BetaNetwork, parts: list[Records], setup: Setup) -> None:
    """Regress log2 (E[a] + small) on the teacher's, and κ on its target."""
    config, seen = setup.config, Records.join(parts)
    optimizer = torch.optim.Adam(network.parameters(), lr=_RATE)
    draw = torch.Generator().manual_seed(config.seed)
    for step in range(config.init_fits):
        chosen = torch.randint(len(seen), (_BATCH,), generator=draw)
        gap, mismatch = _gaps(network, seen, chosen, config.init_kappa)
        for group in optimizer.param_groups:
            group["lr"] = _RATE * (1 - step / config.init_fits)
        optimizer.zero_grad()
        (gap.square().mean() + mismatch.square().mean()).backward()
        optimizer.step()


@torch.no_grad()
def _error(network: BetaNetwork, seen: Records, kappa0: float) -> float:
    parts = torch.arange(len(seen)).split(_BATCH)
    squares = [_gaps(network, seen, part, kappa0)[0].square() for part in parts]
    return torch.cat(squares).mean().sqrt().item()


def _gaps(
    network: BetaNetwork, seen: Records, chosen: Tensor, kappa0: float
) -> tuple[Tensor, Tensor]:
    """How far E[a] is from the teacher's a, in octaves, and ln κ from its target.

    Where thresholds are chosen too, how far these are from the rules' stands beside the latter.
    """
    mu, kappa = network(seen.features[chosen])
    latent, mismatch = seen.latent[chosen], kappa.log() - math.log(kappa0)
    if network.sets_thresholds:
        mismatch = torch.cat((mismatch, mu[:, 1:] - latent[:, 1:]), dim=-1)
        mu, kappa, latent = mu[:, 0], kappa[:, 0], latent[:, 0]
    gap = (expected_fraction(mu, kappa) + _SMALL).log2() - (to_fraction(latent) + _SMALL).log2()
    return gap, mismatch

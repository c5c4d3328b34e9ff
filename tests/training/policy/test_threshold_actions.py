"""A policy that chooses, beside the step, when to commit and when to re-edit."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from flow_scene import SPACE, canvas, info, predictions
from policy_toy import POOL, SMALL, same_weights, toy_model, toy_setup
from toy import prompts

from xpredflow import generate
from xpredflow.flow import Rules
from xpredflow.flow_extensions import ExtendedFlow, make_flow
from xpredflow.policies.beta import (
    BetaConfig,
    BetaNetwork,
    LearnedPolicy,
    joint_log_density,
    load_policy,
    log_density,
    to_threshold,
)
from xpredflow.training.policy.config import GrpoConfig
from xpredflow.training.policy.grpo import Learner, Records
from xpredflow.training.policy.imitation import begin, threshold_latents
from xpredflow.training.policy.trainer import PolicyTraining
from xpredflow.types import Action

SHAPE = BetaConfig(hidden=8, actions="thresholds")
CONFIG = replace(SMALL, actions="thresholds")


class Choosing:
    """A policy that never moves, and commits and re-edits as it was told."""

    sets_thresholds = True

    def __init__(self, commit: float, margin: float) -> None:
        self.commit, self.margin = commit, margin

    def __call__(self, signals, progress, info) -> Action:
        full = torch.full_like
        chosen = full(progress, self.commit), full(progress, self.margin)
        return Action(torch.zeros_like(progress), None, None, None, *chosen)


def test_thresholds_are_fine_near_one() -> None:
    z = torch.tensor([0.0, 0.25, 0.5, 1.0])
    assert to_threshold(z).tolist() == pytest.approx([0.5, 0.895, 0.978, 0.999], abs=1e-3)


def test_the_flow_commits_and_reedits_as_the_policy_says() -> None:
    now = canvas([0.0, 0.0, 0.6, 1.0], [3, 4, 5, 6])
    seen = predictions([3, 4, 5, 7], [0.9, 0.8, 0.5, 0.6])
    flow = make_flow(Choosing(0.75, 0.3), {})
    assert type(flow) is ExtendedFlow
    after, event = flow.step(now, seen, info(), SPACE)
    assert event.committed.tolist() == [[True, True, False, False]]
    assert event.reedited.tolist() == [[False, False, False, True]]
    assert after.progress[0, 3].item() == pytest.approx(0.6)
    assert event.moved is not None
    assert event.moved.all()  # to stay was a choice too: all are recorded
    _, event = make_flow(Choosing(0.99, 0.05), {}).step(now, seen, info(), SPACE)
    assert event.committed.tolist() == [[True, False, False, False]]  # the surest, as ever
    assert event.reedited.tolist() == [[False, False, True, True]]


def test_a_rule_that_is_off_stays_off() -> None:
    flow = make_flow(Choosing(0.1, 0.0), {"commit": "off", "reedit_margin": None})
    seen = predictions([3, 4], [0.9, 0.2])
    _, event = flow.step(canvas([0.0, 0.9], [3, 4]), seen, info(), SPACE)
    assert not event.committed.any()
    assert not event.reedited.any()


def test_the_rules_own_thresholds_are_found_again() -> None:
    z, margin = threshold_latents({"commit_threshold": 0.85, "reedit_margin": 0.1})
    assert to_threshold(torch.tensor(z)).item() == pytest.approx(0.85)
    assert margin == pytest.approx(0.1)
    none, never = threshold_latents({"commit_threshold": None, "reedit_margin": None})
    assert to_threshold(torch.tensor(none)).item() > 0.998
    assert never == 0.95
    assert threshold_latents({})[1] == Rules().reedit_margin


def test_training_begins_with_the_rules() -> None:
    setup = toy_setup(replace(CONFIG, hidden=32, init_fits=300), rules={"commit_threshold": 0.9})
    start = begin(setup, [setup.task.problem("train", n) for n in range(4)])
    mu, kappa = start.network(torch.rand(50, 8))
    assert mu.shape == kappa.shape == (50, 3)
    assert to_threshold(mu[:, 1]).mean().item() == pytest.approx(0.9, abs=0.03)
    assert mu[:, 2].mean().item() == pytest.approx(0.1, abs=0.05)


def test_a_threshold_that_pays_is_learned() -> None:
    """Rewarded is a low commitment threshold, whatever the step: it falls, the step stays."""
    torch.manual_seed(0)
    network, start = BetaNetwork(SHAPE), BetaNetwork(SHAPE)
    start.load_state_dict(network.state_dict())
    learner = Learner(network, start, GrpoConfig(lr=1e-2, epochs=2))
    draw, features = torch.Generator().manual_seed(0), torch.rand(512, 8)
    places = torch.arange(512)
    first = network(features)[0].mean(0).detach()
    for _ in range(30):
        with torch.no_grad():
            mu, kappa = network(features)
            y = torch.distributions.Beta(mu * kappa, (1 - mu) * kappa).sample()
            y = y.clamp(1e-4, 1 - 1e-4)
            log_prob = log_density(y, mu, kappa).sum(-1)
            assert torch.allclose(log_prob, joint_log_density(network, y, features))
        gain = (y[:, 1].mean() - y[:, 1]).reshape(32, 16, 1)
        records = Records(features, y, log_prob, places, torch.zeros_like(places))
        learned = learner.update(records, gain, draw)
    step, commit, _ = (network(features)[0].mean(0) - first).tolist()
    assert commit < -0.15
    assert abs(step) < 0.1
    assert learned.kl_start > 0


def test_such_a_policy_is_trained_saved_resumed_and_decodes(tmp_path: Path) -> None:
    whole = PolicyTraining(toy_setup(CONFIG), POOL, tmp_path / "whole")
    list(whole)
    list(islice(iter(PolicyTraining(toy_setup(CONFIG), POOL, tmp_path / "cut")), 3))
    again = PolicyTraining(toy_setup(CONFIG), POOL, tmp_path / "cut", resume=True)
    assert len(list(again)) == 2
    assert same_weights(again.network, whole.network)
    loaded = load_policy(tmp_path / "whole/policy")
    assert loaded.sets_thresholds
    policy = f"learned:{tmp_path / 'whole/policy'}"
    together = generate(toy_model(), prompts(3), policy=policy, gen_length=8)
    alone = [generate(toy_model(), [p], policy=policy, gen_length=8)[0] for p in prompts(3)]
    assert [done.ids for done in together] == [done.ids for done in alone]


def test_drawn_thresholds_are_the_rows_own() -> None:
    policy = LearnedPolicy(BetaNetwork(SHAPE), temperature=1.0)
    seen = predictions([3, 4], [0.9, 0.2])
    first, again = (policy(seen, torch.zeros(1, 2), info()) for _ in range(2))
    assert first.latent is not None
    assert first.commit_threshold is not None
    assert first.latent.shape == (1, 2, 3)
    assert first.log_prob is not None
    assert first.log_prob.shape == (1, 2)
    assert torch.equal(first.commit_threshold, to_threshold(first.latent[..., 1]))
    assert torch.equal(first.latent, again.latent)  # type: ignore[arg-type]

"""What goes beyond the paper's GRPO, each by itself: views, baselines, caps, whom speed rewards."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal

import pytest
import torch
from policy_toy import POOL, SMALL, same_weights, toy_model, toy_setup
from toy import prompts

from xpredflow import InputError, generate
from xpredflow.engine.signals import features
from xpredflow.policies.beta import BetaConfig, BetaNetwork, load_policy, log_density
from xpredflow.policies.view import view, view_size
from xpredflow.training.policy.baseline import ValueBaseline
from xpredflow.training.policy.config import GrpoConfig
from xpredflow.training.policy.grpo import Learner, Outcomes, Records
from xpredflow.training.policy.synthetic import synthetic_signals
from xpredflow.training.policy.trainer import PolicyTraining


def test_the_view_to_the_left_shows_two_neighbours_and_then_the_prompt() -> None:
    c, t = torch.tensor([[0.5, 0.6, 0.7]]), torch.tensor([[0.1, 0.2, 0.3]])
    signals, rho = synthetic_signals(c), torch.tensor([0.25])
    assert torch.equal(view("position", signals, t, rho), features(signals, t, rho))
    seen = view("left", signals, t, rho)
    assert seen.shape[-1] == view_size("left") == 12
    assert torch.equal(seen[..., :8], features(signals, t, rho))
    expected = [[1, 1, 1, 1], [0.5, 0.1, 1, 1], [0.6, 0.2, 0.5, 0.1]]
    torch.testing.assert_close(seen[0, :, 8:], torch.tensor(expected))


def test_the_view_of_the_prefix_sums_what_is_unsure_and_unsettled_before() -> None:
    c, t = torch.tensor([[0.5, 0.6, 0.7]]), torch.tensor([[0.1, 0.2, 0.3]])
    signals, rho = synthetic_signals(c), torch.tensor([0.25])
    seen = view("prefix", signals, t, rho)
    assert seen.shape[-1] == view_size("prefix") == 14
    assert torch.equal(seen[..., :12], view("left", signals, t, rho))
    expected = [[0, 0], [0.5 / 1.5, 0.9 / 1.9], [0.9 / 1.9, 1.7 / 2.7]]
    torch.testing.assert_close(seen[0, :, 12:], torch.tensor(expected))


@pytest.mark.parametrize("kind", ["left", "prefix"])
def test_what_stands_to_the_right_changes_nothing(kind: str) -> None:
    c, t = torch.rand(2, 2, 6, generator=torch.Generator().manual_seed(0))
    rho = torch.zeros(2)
    whole = view(kind, synthetic_signals(c), t, rho)
    short = view(kind, synthetic_signals(c[:, :1]), t[:, :1], rho)
    assert torch.equal(short, whole[:, :1])
    with pytest.raises(InputError, match="did you mean 'left'"):
        view_size("lef")


@pytest.mark.parametrize("kind", ["left", "prefix"])
def test_a_policy_with_another_view_is_trained_saved_and_decodes(
    tmp_path: Path, kind: Literal["left", "prefix"]
) -> None:
    config = replace(SMALL, view=kind, updates=1)
    training = PolicyTraining(toy_setup(config), POOL, tmp_path)
    assert len(list(training)) == 2
    again = load_policy(tmp_path / "policy").network
    assert again.config.view == kind
    assert same_weights(again, training.network)
    policy = f"learned:{tmp_path / 'policy'}"
    together = generate(toy_model(), prompts(3), policy=policy, gen_length=8)
    alone = [generate(toy_model(), [p], policy=policy, gen_length=8)[0] for p in prompts(3)]
    assert [done.ids for done in together] == [done.ids for done in alone]


def test_speed_may_reward_right_answers_alone() -> None:
    done = Outcomes(
        solved=torch.tensor([[1.0, 0.0]]),
        passes=torch.tensor([[5.0, 1.0]]),
        reedits=torch.zeros(1, 2),
        progress=torch.ones(1, 2, 1),
        decoded=torch.ones(1, 2, 1, dtype=torch.bool),
        budget=10,
    )
    everyone = done.trajectory_rewards(GrpoConfig(speed=0.5))
    right = done.trajectory_rewards(GrpoConfig(speed=0.5, speed_of="solved"))
    assert everyone.tolist() == [[pytest.approx(1.25), pytest.approx(0.45)]]
    assert right.tolist() == [[pytest.approx(1.25), 0.0]]


def test_caps_are_drawn_anew_in_every_update(tmp_path: Path) -> None:
    config = replace(SMALL, budget=10, least_budget="1/5", validate_every=0, updates=4)
    setup = toy_setup(config)
    caps = [setup.capped(update).budget for update in range(200)]
    assert (min(caps), max(caps)) == (2, 10)
    assert len(set(caps)) > 5
    lines = list(PolicyTraining(setup, POOL, tmp_path))
    assert [line["budget"] for line in lines[1:]] == caps[:4]
    assert all(line["passes_used"] <= line["budget"] for line in lines[1:])
    assert toy_setup(SMALL).capped(3).budget == 10
    with pytest.raises(InputError, match=r"least_budget is 11, 11 passes, but budget is 10"):
        PolicyTraining(toy_setup(replace(config, least_budget=11)), POOL, tmp_path / "other")


def recorded(network: BetaNetwork) -> Records:
    draw = torch.Generator().manual_seed(0)
    features = torch.rand(256, 8, generator=draw)
    y = torch.rand(256, generator=draw).clamp(0.01, 0.99)
    with torch.no_grad():
        log_prob = log_density(y, *network(features))
    places = torch.arange(256)
    return Records(features, y, log_prob, places, torch.zeros_like(places))


def test_the_baseline_learns_what_a_view_promises() -> None:
    value, draw = ValueBaseline("position"), torch.Generator().manual_seed(0)
    features = torch.rand(512, 8, generator=draw)
    promised, weight = features[:, 0] - 0.5, torch.ones(512)
    assert value(features).abs().max() == 0  # it takes nothing off before it knows anything
    for _ in range(60):
        value.fit(features, promised, weight, draw)
    assert (value(features) - promised).square().mean() < 0.1 * promised.square().mean()
    other = ValueBaseline("position")
    other.restore(value.state())
    assert torch.equal(other(features), value(features))


def test_what_a_view_promises_is_taken_off_the_advantage(monkeypatch: pytest.MonkeyPatch) -> None:
    network = BetaNetwork(BetaConfig(hidden=8))
    records = recorded(network)
    promised = records.features[:, 0].reshape(16, 16, 1) - 0.5
    learnt: list[torch.Tensor] = []
    monkeypatch.setattr(Learner, "_step", lambda self, r, gain, *rest: learnt.append(gain) or 0.0)
    plain, knowing = (
        Learner(network, network, GrpoConfig(baseline=kind)) for kind in ("group", "value")
    )
    assert knowing.baseline is not None
    draw = torch.Generator().manual_seed(1)
    for _ in range(60):
        knowing.baseline.fit(records.features, promised.flatten(), torch.ones(256), draw)
    plain.update(records, promised, draw)
    knowing.update(records, promised, draw)
    assert torch.equal(learnt[0], promised.flatten())
    assert learnt[-1].square().mean() < 0.1 * learnt[0].square().mean()


def test_a_run_with_all_options_goes_on_where_it_was(tmp_path: Path) -> None:
    config = replace(
        SMALL, view="left", baseline="value", least_budget=4, speed=0.3, speed_of="solved"
    )
    whole = PolicyTraining(toy_setup(config), POOL, tmp_path / "whole")
    list(whole)
    list(islice(iter(PolicyTraining(toy_setup(config), POOL, tmp_path / "cut")), 3))
    again = PolicyTraining(toy_setup(config), POOL, tmp_path / "cut", resume=True)
    assert len(list(again)) == 2
    assert same_weights(again.network, whole.network)

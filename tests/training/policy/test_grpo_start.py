"""What a policy's training begins with, its settings, and what its log is made of."""

import json
from dataclasses import replace

import pytest
import torch
from policy_toy import POOL, SMALL, same_weights, toy_setup

from xpredflow import InputError
from xpredflow.policies.beta import BetaConfig, BetaNetwork, save_policy
from xpredflow.policies.heuristic import Jump
from xpredflow.training.policy.grpo import Records
from xpredflow.training.policy.imitation import begin, check_init, to_latent
from xpredflow.training.policy.log import action_by_confidence, why_no_signal
from xpredflow.training.policy.synthetic import fractions, info_at, synthetic_signals
from xpredflow.training.policy.trainer import PolicyTraining


def test_a_heuristic_is_imitated() -> None:
    setup = toy_setup(replace(SMALL, init="power:2", hidden=32, init_fits=300))
    start = begin(setup, [setup.task.problem("train", n) for n in range(4)])
    assert start.error is not None
    assert start.error < 0.6
    c, t = torch.tensor([0.3, 0.5, 0.8]), torch.tensor([0.1, 0.6])
    wanted = (c**2).unsqueeze(-1).expand(-1, 2)
    found = fractions(start.network, c, t, 0.3)
    assert (found.log2() - wanted.log2()).abs().max() < 0.6
    _, kappa = start.network(torch.rand(50, 8))
    assert 10 < kappa.mean() < 40


def test_a_fraction_of_zero_is_the_smallest_action() -> None:
    y = to_latent(torch.tensor([0.0, 1 / 256, 1 / 16, 1.0]))
    assert y.tolist() == pytest.approx([0.0, 0.0, 0.5, 1.0])


def test_imagined_views_leave_half_of_the_rest_to_the_next() -> None:
    signals = synthetic_signals(torch.tensor([[0.6, 0.1]]))
    torch.testing.assert_close(
        signals.top_probs, torch.tensor([[[0.6, 0.2, 0.1, 0.05], [0.1, 0.1, 0.1, 0.1]]])
    )
    assert signals.entropy4[0, 1].item() == pytest.approx(1.0)
    assert info_at(torch.tensor([0.0, 0.5, 1.0])).rho.tolist() == pytest.approx([0, 0.5, 1])
    assert Jump(0.5)(signals, torch.zeros(1, 2), info_at(torch.zeros(1))).fraction.tolist() == [
        [1.0, 0.0]
    ]


def test_training_goes_on_from_a_policy_or_from_nothing(tmp_path) -> None:
    torch.manual_seed(1)
    network = BetaNetwork(BetaConfig(hidden=12, kappa_max=15.0))
    save_policy(network, tmp_path / "p", {})
    config = replace(SMALL, init=f"learned:{tmp_path / 'p'}")
    training = PolicyTraining(toy_setup(config), POOL, tmp_path / "a")
    assert next(iter(training))["fit_error"] is None
    assert same_weights(training.network, network)
    assert json.loads((tmp_path / "a/policy.json").read_text())["config"]["hidden"] == 12
    fresh = [begin(toy_setup(replace(SMALL, init="none")), []).network for _ in range(2)]
    assert same_weights(*fresh)


@pytest.mark.parametrize("init", ["pover:8", "power:fast", "learned:nowhere", "confidence:1"])
def test_a_start_that_cannot_be_had_is_named(init: str) -> None:
    with pytest.raises(InputError):
        check_init(init)


@pytest.mark.parametrize(
    ("accuracy", "kappa", "cause"),
    [
        (1.0, 50.0, "every rollout was right"),
        (0.0, 50.0, "no rollout was right"),
        (0.5, 97.0, "became deterministic"),
        (0.5, 50.0, "always or never solved"),
    ],
)
def test_the_likely_cause_is_named(accuracy: float, kappa: float, cause: str) -> None:
    assert cause in why_no_signal({"accuracy": accuracy, "kappa": kappa}, 100.0)


def test_actions_are_averaged_by_confidence() -> None:
    features = torch.zeros(4, 8)
    features[:, 0] = torch.tensor([0.05, 0.95, 1.0, 0.5])
    y = to_latent(torch.tensor([0.25, 0.5, 1.0, 0.125]))
    nothing = torch.zeros(4)
    bins = action_by_confidence(Records(features, y, nothing, nothing.long(), nothing.long()))
    expected = [0.25, *[None] * 4, 0.125, *[None] * 3, 0.75]
    assert [a if a is None else pytest.approx(a) for a in bins] == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"group": 1}, "group is 1: an advantage is relative"),
        ({"prompts": 0}, "prompts is 0"),
        ({"budget": "5/4"}, "as a share it must be above 0 and at most 1"),
        ({"kappa_min": 0.0}, "expected 0 < kappa_min < kappa_max"),
        ({"init_kappa": 500.0}, "init_kappa is 500.0: give a number between"),
        ({"seed": -1}, "seed is -1"),
        ({"gen_length": 0}, "gen_length is 0"),
    ],
)
def test_bad_settings_are_named(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SMALL, **values)

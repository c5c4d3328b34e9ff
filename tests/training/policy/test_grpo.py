"""GRPO's arithmetic: rewards, advantages, the clipped loss and its gradient; and that it learns."""

import math
import subprocess
import sys

import pytest
import torch
from scipy import integrate, special, stats

from xpredflow import InputError
from xpredflow.policies.beta import BetaConfig, BetaNetwork, log_density
from xpredflow.training.policy.config import GrpoConfig
from xpredflow.training.policy.grpo import (
    Learner,
    Outcomes,
    Records,
    advantages,
    divergence,
    surrogate,
)


def outcomes(solved, progress, passes=None, decoded=None, budget=10) -> Outcomes:
    t = torch.tensor(progress)
    right = torch.tensor(solved)
    return Outcomes(
        solved=right,
        passes=torch.full_like(right, 5.0) if passes is None else torch.tensor(passes),
        reedits=torch.zeros_like(right),
        progress=t,
        decoded=torch.ones_like(t, dtype=torch.bool) if decoded is None else torch.tensor(decoded),
        budget=budget,
    )


MIXED = outcomes([[1.0, 0.0]], [[[1.0, 0.5], [1.0, 0.9]]])
CONSTANT = outcomes([[1.0, 1.0]], [[[1.0, 0.5], [1.0, 0.9]]])


def test_an_advantage_is_the_reward_less_its_mean_over_the_draws() -> None:
    a = advantages(MIXED, GrpoConfig(completion=0.2))
    # R = [[1.2, 1.1], [0.2, 0.18]], means [0.7, 0.64]
    torch.testing.assert_close(a, torch.tensor([[[0.5, 0.46], [-0.5, -0.46]]]))
    constant = advantages(CONSTANT, GrpoConfig(completion=0.2))
    torch.testing.assert_close(constant, torch.tensor([[[0.0, -0.04], [0.0, 0.04]]]))


def test_normalised_by_the_deviation_of_a_rollouts_total() -> None:
    config = GrpoConfig(completion=0.2, normalise="total")
    # totals [1.15, 0.19]: deviation 0.48
    expected = torch.tensor([[[0.5, 0.46], [-0.5, -0.46]]]) / 0.48
    torch.testing.assert_close(advantages(MIXED, config), expected)
    # totals [1.15, 1.19]: 0.02, below the floor of 0.1
    expected = torch.tensor([[[0.0, -0.04], [0.0, 0.04]]]) / 0.1
    torch.testing.assert_close(advantages(CONSTANT, config), expected)


def test_normalised_per_position_lambda_means_nothing_where_the_task_is_constant() -> None:
    for completion in (0.2, 0.002):
        config = GrpoConfig(completion=completion, normalise="position")
        a = advantages(CONSTANT, config)
        torch.testing.assert_close(a, torch.tensor([[[0.0, -1.0], [0.0, 1.0]]]))
        mixed = advantages(MIXED, config)
        torch.testing.assert_close(mixed, torch.tensor([[[1.0, 1.0], [-1.0, -1.0]]]))


@pytest.mark.parametrize("normalise", ["none", "total"])
def test_otherwise_lambda_keeps_its_meaning(normalise) -> None:
    small, large = (
        advantages(CONSTANT, GrpoConfig(completion=completion, normalise=normalise))
        for completion in (0.01, 0.02)
    )
    torch.testing.assert_close(2 * small, large)


def test_speed_is_a_bonus_for_what_is_left_of_the_budget() -> None:
    quick = outcomes([[1.0, 1.0]], [[[1.0], [1.0]]], passes=[[2.0, 6.0]])
    config = GrpoConfig(completion=0.0, speed=0.5)
    assert quick.total_rewards(config).tolist() == [[pytest.approx(1.4), pytest.approx(1.2)]]
    a = advantages(quick, config)
    torch.testing.assert_close(a, torch.tensor([[[0.1], [-0.1]]]))


def test_positions_that_were_not_decoded_do_not_count() -> None:
    short = outcomes(
        [[1.0, 0.0]],
        [[[1.0, 0.5], [0.6, 0.0]]],
        decoded=[[[True, True], [True, False]]],
    )
    config = GrpoConfig(completion=1.0)
    torch.testing.assert_close(
        short.mean_progress(), torch.tensor([[0.75, 0.6]], dtype=torch.float64)
    )
    a = advantages(short, config)
    torch.testing.assert_close(a, torch.tensor([[[0.7, 0.5], [-0.7, -0.5]]]))


@pytest.mark.parametrize(
    ("ratio", "advantage", "slope"),
    [
        (1.0, 2.0, -2.0),
        (1.0, -2.0, 2.0),
        (1.3, 2.0, 0.0),  # already likelier by more than the clip: no further push
        (0.7, -2.0, 0.0),
        (1.3, -2.0, 2.6),  # a mistake that became likelier is always pushed back
        (0.7, 2.0, -1.4),
    ],
)
def test_the_clipped_loss_pushes_only_within_its_bounds(ratio, advantage, slope) -> None:
    log_ratio = torch.tensor([math.log(ratio)], requires_grad=True)
    surrogate(log_ratio, torch.tensor([advantage]), clip=0.2).sum().backward()
    assert log_ratio.grad is not None
    assert log_ratio.grad.item() == pytest.approx(slope, rel=1e-5)


def test_the_gradient_of_the_density_is_the_closed_form() -> None:
    y = torch.tensor([0.03, 0.5, 0.97], dtype=torch.float64)
    mu = torch.tensor([0.2, 0.6, 0.9], dtype=torch.float64, requires_grad=True)
    kappa = torch.tensor([3.0, 20.0, 90.0], dtype=torch.float64, requires_grad=True)
    log_density(y, mu, kappa).sum().backward()
    a, b = (mu * kappa).detach(), ((1 - mu) * kappa).detach()
    psi_a, psi_b, psi = (torch.from_numpy(special.digamma(x.numpy())) for x in (a, b, a + b))
    d_a, d_b = y.log() - psi_a + psi, (1 - y).log() - psi_b + psi
    assert mu.grad is not None
    assert kappa.grad is not None
    torch.testing.assert_close(mu.grad, kappa.detach() * (d_a - d_b))
    torch.testing.assert_close(kappa.grad, mu.detach() * d_a + (1 - mu.detach()) * d_b)


def test_divergence_is_the_integral() -> None:
    torch.manual_seed(0)
    p, q = BetaNetwork(), BetaNetwork()
    s = torch.rand(1, 8)
    (mp, kp), (mq, kq) = ((v.item() for v in net(s)) for net in (p, q))

    def gain(y: float) -> float:
        f, g = ((m * k, (1 - m) * k) for m, k in ((mp, kp), (mq, kq)))
        log_ratio = stats.beta.logpdf(y, *f) - stats.beta.logpdf(y, *g)
        return float(stats.beta.pdf(y, *f) * log_ratio)

    exact, _ = integrate.quad(gain, 0, 1)
    assert divergence(p, q, s).item() == pytest.approx(exact, rel=1e-3, abs=1e-5)


def drawn(network: BetaNetwork, features: torch.Tensor, column=None, rollout=None) -> Records:
    with torch.no_grad():
        mu, kappa = network(features)
        y = torch.distributions.Beta(mu * kappa, (1 - mu) * kappa).sample().clamp(1e-6, 1 - 1e-6)
        log_prob = log_density(y, mu, kappa)
    places = torch.arange(len(y))
    return Records(
        features,
        y,
        log_prob,
        places if rollout is None else rollout,
        torch.zeros_like(places) if column is None else column,
    )


def learner(config: GrpoConfig, shape: BetaConfig | None = None) -> Learner:
    torch.manual_seed(0)
    network, start = BetaNetwork(shape), BetaNetwork(shape)
    start.load_state_dict(network.state_dict())
    return Learner(network, start, config)


def test_an_update_makes_rewarded_draws_likelier() -> None:
    learns = learner(GrpoConfig(lr=1e-3, epochs=1, minibatches=1))
    records = drawn(learns.network, torch.rand(64, 8))
    sign = torch.where(torch.arange(64) % 2 == 0, 1.0, -1.0)
    done = learns.update(records, sign.reshape(8, 8, 1), torch.Generator())
    with torch.no_grad():
        gained = log_density(records.latent, *learns.network(records.features)) - records.log_prob
    assert (gained * sign).mean() > 0
    assert done.clip_share == 0  # before the first step every ratio is 1
    assert done.kl_step == done.kl_start > 0


def test_every_rollout_weighs_the_same_whatever_its_length() -> None:
    learns = learner(GrpoConfig(epochs=1, minibatches=1))
    one = drawn(learns.network, torch.rand(1, 8))
    copies = 99
    many = Records(
        one.features.expand(1 + copies, -1),
        one.latent.expand(1 + copies),
        one.log_prob.expand(1 + copies),
        torch.tensor([0] + [1] * copies),
        torch.zeros(1 + copies, dtype=torch.long),
    )
    learns.update(many, torch.tensor([[[1.0], [-1.0]]]), torch.Generator())
    grads = [p.grad for p in learns.network.parameters() if p.grad is not None]
    assert len(grads) == 8
    assert all(grad.abs().max() < 1e-5 for grad in grads)  # one for, one against


def test_the_penalty_keeps_the_policy_near_its_start() -> None:
    drift = []
    for kl in (0.0, 10.0):
        learns = learner(GrpoConfig(lr=1e-2, kl=kl))
        for seed in range(10):
            torch.manual_seed(seed)
            records = drawn(learns.network, torch.rand(64, 8))
            gain = (records.latent - records.latent.mean()).reshape(8, 8, 1)
            last = learns.update(records, gain, torch.Generator().manual_seed(seed))
        drift.append(last.kl_start)
    assert drift[1] < drift[0] / 5


def test_nothing_recorded_changes_nothing() -> None:
    learns = learner(GrpoConfig())
    before = [p.clone() for p in learns.network.parameters()]
    none = torch.zeros(0)
    empty = Records(torch.zeros(0, 8), none, none, none.long(), none.long())
    learns.update(empty, torch.zeros(1, 2, 1), torch.Generator())
    assert all(map(torch.equal, before, learns.network.parameters()))


def test_it_learns_a_bandit() -> None:
    """Right is a rollout in which three of four draws are high where p1 is, low where it is not."""
    learns = learner(GrpoConfig(lr=1e-2), BetaConfig(hidden=16, kappa_max=20.0))
    config, shares = learns.config, []
    for update in range(40):
        torch.manual_seed(update)
        features = torch.rand(8, 1, 4, 8).expand(-1, 8, -1, -1)  # 8 prompts, 8 draws, 4 positions
        rollout = torch.arange(64).repeat_interleave(4)
        column = torch.arange(4).repeat(64)
        records = drawn(learns.network, features.reshape(-1, 8), column, rollout)
        fits = (records.latent > 0.5) == (records.features[:, 0] > 0.5)
        solved = (fits.reshape(8, 8, 4).sum(-1) >= 3).float()
        ended = Outcomes(
            solved=solved,
            passes=torch.ones(8, 8),
            reedits=torch.zeros(8, 8),
            progress=torch.ones(8, 8, 4),
            decoded=torch.ones(8, 8, 4, dtype=torch.bool),
            budget=1,
        )
        draw = torch.Generator().manual_seed(update)
        learns.update(records, advantages(ended, config), draw)
        shares.append(solved.mean().item())
    assert sum(shares[:3]) / 3 < 0.5
    assert sum(shares[-3:]) / 3 > 0.8


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"completion": -1.0}, "completion is -1.0: expected a number ≥ 0"),
        ({"clip": 0.0}, "clip is 0.0: expected a number > 0"),
        ({"epochs": 0}, "epochs is 0: expected a number ≥ 1"),
    ],
)
def test_bad_settings_are_named(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        GrpoConfig(**values)


def test_the_update_knows_no_language_model() -> None:
    code = (
        "import sys, xpredflow.training.policy.grpo\n"
        "rooms = ('xpredflow.models', 'xpredflow.engine.loop')\n"
        "sys.exit(', '.join(m for m in sys.modules if m.startswith(rooms)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

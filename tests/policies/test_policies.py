"""Step-size policies: closed forms, SciPy as the judge of the Beta policy, files."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from scipy import special, stats
from toy import ToyModel, prompts

from xpredflow import Flow, InputError, Rules, generate, make_decoder, make_policy
from xpredflow.engine.signals import read
from xpredflow.flow_extensions import ExtendedRules
from xpredflow.policies.beta import (
    BetaConfig,
    BetaNetwork,
    LearnedPolicy,
    expected_fraction,
    load_policy,
    log_density,
    policy_files,
    save_policy,
    to_fraction,
)
from xpredflow.types import Signals, SpecialTokens, StepInfo


def test_expected_action_agrees_with_scipy_everywhere() -> None:
    mu, kappa = torch.meshgrid(
        torch.linspace(0.05, 0.95, 91, dtype=torch.float64),
        torch.logspace(-1, 4, 60, dtype=torch.float64),
        indexing="ij",
    )
    exact = special.hyp1f1((mu * kappa).numpy(), kappa.numpy(), np.log(256)) / 256
    np.testing.assert_allclose(expected_fraction(mu, kappa).numpy(), exact, rtol=1e-9, atol=1e-6)
    single = expected_fraction(mu.float(), kappa.float())
    np.testing.assert_allclose(single.numpy(), exact, atol=1e-6)


def test_expected_action_is_not_the_action_of_the_mean() -> None:
    mu, kappa = torch.tensor([2 / 5]), torch.tensor([5.0])  # Beta(2, 3)
    assert expected_fraction(mu, kappa).item() == pytest.approx(0.068, abs=5e-4)
    assert to_fraction(mu).item() == pytest.approx(0.036, abs=5e-4)


def test_the_scale_of_actions_is_logarithmic() -> None:
    y = torch.tensor([0.0, 0.5, 1.0])
    assert to_fraction(y).tolist() == pytest.approx([1 / 256, 1 / 16, 1.0])


def test_log_density_is_scipys() -> None:
    y, mu, kappa = (
        torch.tensor([0.1, 0.5, 0.93]),
        torch.tensor([0.3, 0.5, 0.9]),
        torch.tensor([4.0, 20, 80]),
    )
    expected = stats.beta.logpdf(y.numpy(), (mu * kappa).numpy(), ((1 - mu) * kappa).numpy())
    np.testing.assert_allclose(log_density(y, mu, kappa).numpy(), expected, rtol=1e-4)


def _signals(seed: int, rows: int = 2) -> Signals:
    draw = torch.Generator().manual_seed(seed)
    return read(3 * torch.randn(rows, 6, 23, generator=draw), SpecialTokens(22, 21))


def _moment(rows: tuple[int, ...], step: int = 3, seed: int = 0) -> StepInfo:
    b = len(rows)
    return StepInfo(
        torch.full((b,), step), torch.full((b,), 9), rows=rows, seed=seed, block=(0,) * b
    )


@given(st.integers(0, 2**31), st.floats(0, 1))
def test_every_policy_gives_fractions_in_the_unit_interval(seed: int, t: float) -> None:
    progress = torch.full((2, 6), t)
    for spec in ("constant:1/3", "confidence", "uniform", "uniform:1/4", "jump:0.5", "power:4"):
        a = make_policy(spec)(_signals(seed), progress, _moment((0, 1))).fraction
        assert ((a >= 0) & (a <= 1)).all(), spec
        assert (progress + a * (1 - progress) <= 1 + 1e-6).all()


def test_uniform_moves_everything_by_the_same_dt() -> None:
    progress = torch.tensor([[0.0, 0.3, 0.5, 0.6, 0.8, 0.95]] * 2)
    dt = make_policy("uniform:1/8")(_signals(0), progress, _moment((0, 1))).fraction * (
        1 - progress
    )
    assert dt[0].tolist() == pytest.approx([0.125] * 5 + [0.05])
    whole = make_policy("uniform")(_signals(0), torch.zeros(2, 6), _moment((0, 1))).fraction
    assert whole.unique().tolist() == pytest.approx([1 / 9])


def test_features_are_those_of_the_paper() -> None:
    seen = _signals(4)
    action = LearnedPolicy(BetaNetwork())(seen, torch.full((2, 6), 0.25), _moment((0, 1), step=4))
    assert action.features is not None
    p = seen.whole.logits[..., :22].double().softmax(-1).topk(4, -1).values
    q = p / p.sum(-1, keepdim=True)
    entropy = -(q * q.log()).sum(-1) / np.log(4)
    expected = torch.cat(
        [p, torch.stack([entropy, p[..., 0] - p[..., 1], torch.full_like(entropy, 0.25),
                         torch.full_like(entropy, 4 / 8)], -1)], -1)  # fmt: skip
    torch.testing.assert_close(action.features.double(), expected, atol=1e-5, rtol=1e-5)


def test_sampling_depends_on_seed_row_and_step_alone() -> None:
    policy = LearnedPolicy(BetaNetwork(), temperature=1.0)
    seen, t = _signals(1, rows=3), torch.zeros(3, 6)
    all_three = policy(seen, t, _moment((4, 5, 6))).fraction
    kept = (seen.top_probs, seen.top_tokens, seen.log_total, seen.log_odds)
    alone = Signals(*(tensor[1:2] for tensor in kept))  # type: ignore[arg-type]
    torch.testing.assert_close(all_three[1:2], policy(alone, t[:1], _moment((5,))).fraction)
    assert not torch.equal(all_three, policy(seen, t, _moment((4, 5, 6), seed=1)).fraction)
    assert not torch.equal(all_three, policy(seen, t, _moment((4, 5, 6), step=4)).fraction)


def test_temperature_widens_and_keeps_the_mean() -> None:
    network, seen = BetaNetwork(), _signals(2, rows=1)
    t = torch.zeros(1, 6)

    def draws(temperature: float) -> torch.Tensor:
        policy = LearnedPolicy(network, temperature)
        actions = [policy(seen, t, _moment((0,), seed=seed)).latent for seed in range(600)]
        return torch.stack([y for y in actions if y is not None])

    cold, hot = draws(0.25), draws(4.0)
    assert (hot.std(0) > 1.5 * cold.std(0)).all()
    torch.testing.assert_close(hot.mean(0), cold.mean(0), atol=0.06, rtol=0)


def test_a_saved_policy_decodes_the_same(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = BetaNetwork(BetaConfig(hidden=16, kappa_max=30.0))
    save_policy(network, tmp_path / "p", {"model": "toy", "seed": 3})
    assert json.loads((tmp_path / "p.json").read_text())["training"] == {"model": "toy", "seed": 3}
    assert sorted(f.name for f in tmp_path.iterdir()) == ["p.json", "p.safetensors"]

    def run(policy) -> list[list[int]]:
        return [d.all_ids for d in generate(ToyModel(), prompts(3), policy=policy, gen_length=12)]

    assert run(f"learned:{tmp_path / 'p'}") == run(LearnedPolicy(network))


def test_a_learned_policy_brings_the_rules_it_was_trained_under(tmp_path: Path) -> None:
    trained = {"config": {"tau": 0.5, "reedit_margin": None, "commit_threshold": 0.8, "group": 8}}
    save_policy(BetaNetwork(), tmp_path / "p", trained)
    options = {"policy": f"learned:{tmp_path / 'p'}"}
    as_trained = make_decoder("flow", options)
    as_given = make_decoder("flow", {**options, "tau": 0.7, "commit_threshold": None})
    assert isinstance(as_trained, Flow)
    assert isinstance(as_given, Flow)
    assert as_trained.rules == ExtendedRules(None, commit_threshold=0.8, tau=0.5)
    assert as_given.rules == Rules(None, tau=0.7)
    paper = make_decoder("flow", {**options, "rules": "paper"})
    assert isinstance(paper, Flow)
    assert paper.rules == Rules()
    with pytest.raises(InputError, match="trained under none"):
        make_decoder("flow:confidence", {"rules": "policy"})


def test_a_policy_saved_under_the_rules_old_names_is_read(tmp_path: Path) -> None:
    old = {"commit_below": 0.9, "commit_above": 0.8, "commit_bound": 0.1}
    save_policy(BetaNetwork(), tmp_path / "p", {"config": old})
    made = make_decoder("flow", {"policy": f"learned:{tmp_path / 'p'}"})
    assert isinstance(made, Flow)
    assert made.rules == ExtendedRules(
        commit_max_progress=0.9, commit_threshold=0.8, commit_entropy=0.1
    )


def test_policies_that_come_with_the_package_have_names(tmp_path: Path) -> None:
    weights, about = policy_files("tiny")
    assert weights.is_file()
    assert json.loads(about.read_text())["training"]["config"]["task"] == "minicode"
    assert isinstance(make_policy("learned:tiny"), LearnedPolicy)
    with pytest.raises(InputError, match=r"comes with the package \(tiny, tiny-left\)"):
        policy_files("tinny")


def test_a_broken_policy_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.safetensors.*does not exist"):
        load_policy(tmp_path / "gone")
    save_policy(BetaNetwork(), tmp_path / "p", {})
    (tmp_path / "p.safetensors").write_bytes(b"short")
    with pytest.raises(InputError, match=r"p\.safetensors.*cannot be read"):
        load_policy(tmp_path / "p")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("constnat:1/4", "unknown policy 'constnat': did you mean 'constant'"),
        ("constant:fast", "'fast'.*expected a number"),
        ("confidence:0.5", "takes no value"),
        ("learned", "learned:FILE"),
        ("constant:1/0", "'1/0'"),
    ],
)
def test_bad_policies_are_explained(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_policy(spec)


def test_only_a_learned_policy_has_a_temperature() -> None:
    with pytest.raises(InputError, match="not sampled"):
        generate(ToyModel(), prompts(1), policy="confidence", policy_temperature=2.0)


def test_a_policy_of_nan_is_blamed_itself(tmp_path: Path) -> None:
    save_policy(BetaNetwork(), tmp_path / "p", {})
    weights = load_file(tmp_path / "p.safetensors")
    weights["mean.bias"][:] = torch.nan
    save_file(weights, tmp_path / "p.safetensors")
    with pytest.raises(InputError, match=r"p.safetensors.*mean.bias holds NaN or infinity"):
        load_policy(tmp_path / "p")


def test_weights_are_not_taken_for_those_of_another_training(tmp_path: Path) -> None:
    for name in ("old", "new"):
        save_policy(BetaNetwork(), tmp_path / name, {"updates": name})
    # as a kill between the two files would leave them
    (tmp_path / "new.safetensors").rename(tmp_path / "old.safetensors")
    with pytest.raises(InputError, match=r"old.json describes other weights.*restore the pair"):
        load_policy(tmp_path / "old")


@pytest.mark.parametrize(
    "text", ["[]", "[" * 10**5, '{"config": 3}', '{"config": {}, "training": 3}']
)
def test_a_description_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    save_policy(BetaNetwork(), tmp_path / "p", {})
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InputError, match=r"p.safetensors.*cannot be read"):
        load_policy(tmp_path / "p")

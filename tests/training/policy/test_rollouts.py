"""Rollouts: only actions with an effect are recorded; draws depend on their number alone."""

from dataclasses import replace

import pytest
import torch
from policy_toy import SMALL, toy_model, toy_setup
from toy import EOS, prompts

from xpredflow.engine.loop import decode_steps
from xpredflow.flow import Flow, Rules
from xpredflow.policies.beta import BetaConfig, BetaNetwork, LearnedPolicy, log_density
from xpredflow.policies.heuristic import Power
from xpredflow.training.policy.rollouts import Recorder, group_rollouts, roll_out


@pytest.fixture
def network() -> BetaNetwork:
    torch.manual_seed(0)
    return BetaNetwork(BetaConfig(hidden=8, kappa_max=20.0))


@pytest.fixture
def policy(network: BetaNetwork) -> LearnedPolicy:
    return LearnedPolicy(network, temperature=1.0)


def test_only_actions_with_an_effect_are_recorded(policy: LearnedPolicy) -> None:
    """Rows of unequal prompts and blocks of unequal width, so that there is padding."""
    recorder, asked = Recorder(), dict(enumerate(prompts(4)))
    expected, seen = [], {"reedited": 0, "committed": 0, "padding": 0, "settled": 0}
    last: dict[tuple[int, int], float] = {}  # t after the row's previous step
    options = {"gen_length": 12, "block_length": 5, "stop_at_eos": False, "seed": 3}
    for step in decode_steps(toy_model(), asked, decoder=Flow(policy, Rules(tau=0.2)), **options):
        recorder.add(step)
        for i, row in enumerate(step.rows):
            for j, position in enumerate(step.positions[i].tolist()):
                t = last.get((row, position), 0.0)
                last[row, position] = step.canvas.progress[i, j].item()
                excuses = {
                    "padding": position < 0,
                    "reedited": bool(step.event.reedited[i, j]),
                    "committed": bool(step.event.committed[i, j]),
                    "settled": t == 1.0,
                }
                for name, holds in excuses.items():
                    seen[name] += holds
                if not any(excuses.values()):
                    expected.append((row, position - len(asked[row])))
    records = recorder.records()
    found = list(zip(records.rollout.tolist(), records.column.tolist(), strict=True))
    assert found == expected
    assert all(seen.values()), seen  # every excuse occurred
    assert set(records.column.tolist()) <= set(range(12))


def test_a_row_that_stopped_records_nothing_more(policy: LearnedPolicy) -> None:
    setup = toy_setup(replace(SMALL, budget="8"), rules={"tau": 0.2})
    rows = {n: setup.task.problem("train", n) for n in range(6)}
    records, ended = roll_out(setup, policy, rows)
    assert [one.row for one in ended] == list(rows)
    assert len({one.passes for one in ended}) > 1  # some stopped before others
    for one in ended:
        mine = records.features[records.rollout == one.row]
        rho = mine[:, 7].max().item() * 7
        assert rho <= one.passes - 1 + 1e-4


def test_recorded_densities_are_those_of_the_policy(policy: LearnedPolicy) -> None:
    setup = toy_setup()
    records, _ = group_rollouts(setup, policy, 0, [setup.task.problem("train", 0)])
    with torch.no_grad():
        now = log_density(records.latent, *policy.network(records.features))
    assert len(records) > 50
    ratio = (now - records.log_prob).exp()
    torch.testing.assert_close(ratio, torch.ones_like(ratio), atol=1e-4, rtol=0)


def test_draws_differ_from_each_other_and_repeat_by_number(policy: LearnedPolicy) -> None:
    setup = toy_setup()
    problems = [setup.task.problem("train", n) for n in (0, 1, 0)]
    first, _ = group_rollouts(setup, policy, 5, problems)
    again, _ = group_rollouts(setup, policy, 5, problems)
    later, _ = group_rollouts(setup, policy, 6, problems)
    assert torch.equal(first.latent, again.latent)
    assert torch.equal(first.rollout, again.rollout)

    def opening(records, rollout: int) -> list[float]:
        return records.latent[records.rollout == rollout][:5].tolist()

    openings = [opening(records, i) for records in (first, later) for i in range(12)]
    assert len({tuple(values) for values in openings}) == 24


def test_the_outcome_is_what_decoding_gave(policy: LearnedPolicy) -> None:
    setup = toy_setup()
    problems = [setup.task.problem("train", n) for n in (3, 4)]
    _, outcomes = group_rollouts(setup, policy, 1, problems)
    # rows 8 to 15: two prompts, four draws each
    rows = {8 + i: problems[i // 4].meta["messages"] for i in range(8)}
    steps = decode_steps(toy_model(), rows, decoder=Flow(policy), gen_length=10)
    done = {d.row: d for step in steps for d in step.finished}
    for row, one in done.items():
        place = divmod(row - 8, 4)
        verdict = setup.task.score(problems[place[0]], one.text)
        assert outcomes.solved[place].item() == verdict.passed
        assert outcomes.passes[place].item() == one.passes
        assert outcomes.progress[place].tolist() == pytest.approx(one.progress, abs=1e-4)
    assert 0 < outcomes.solved.mean() < 1
    assert outcomes.decoded.all()
    assert outcomes.budget == 10


def test_positions_after_the_end_of_the_text_have_no_progress(policy: LearnedPolicy) -> None:
    model = toy_model()
    model.head = torch.zeros_like(model.head)
    model.block_size = 8

    def logits(*arguments):
        z = type(model).logits(model, *arguments)
        z[..., EOS] += 9.0
        return z

    model.logits = logits  # type: ignore[method-assign]
    setup = replace(toy_setup(replace(SMALL, gen_length=24, budget="24")), model=model)
    _, outcomes = group_rollouts(setup, policy, 0, [setup.task.problem("train", 0)])
    decoded = outcomes.decoded.sum(-1)
    assert (decoded <= 8).all()
    assert (decoded >= 1).all()
    assert (outcomes.progress[~outcomes.decoded] == 0).all()
    # what was decoded counts alone
    mean = outcomes.progress.sum(-1).double() / decoded
    torch.testing.assert_close(outcomes.mean_progress(), mean)


def test_a_policy_without_a_density_cannot_be_recorded() -> None:
    setup = toy_setup()
    rows = {0: setup.task.problem("train", 0)}
    with pytest.raises(ValueError, match="shows its features"):
        roll_out(setup, Power(), rows)
    with pytest.raises(ValueError, match="give it a temperature"):
        roll_out(setup, LearnedPolicy(BetaNetwork()), rows)

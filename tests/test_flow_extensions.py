"""Our rules on top of the paper's: each does what it says, and nothing unless it is named."""

from dataclasses import replace

import pytest
import torch
from flow_scene import BARE, SPACE, canvas, info, predictions
from toy import ToyModel, prompts

from xpredflow import Flow, StopReason, generate, make_decoder
from xpredflow.flow_extensions import EXTENSIONS, ExtendedFlow, ExtendedRules, make_flow
from xpredflow.policies.heuristic import Constant

OURS = ExtendedRules(reedit_margin=None, commit="off")


def test_nothing_named_is_the_papers_flow() -> None:
    assert type(make_flow(Constant(), {"tau": 0.8})) is Flow
    for name, value in (("max_idle_passes", 2), ("trust", "held"), ("commit_threshold", 0.9)):
        assert name in EXTENSIONS
        assert type(make_flow(Constant(), {name: value})) is ExtendedFlow


def test_with_its_rules_at_rest_the_extended_flow_is_the_papers() -> None:
    def run(flow: Flow) -> list[tuple]:
        found = generate(ToyModel(4), prompts(4), decoder=flow, gen_length=12, block_length=5)
        return [(done.all_ids, done.passes, done.progress) for done in found]

    assert run(Flow(Constant(0.3))) == run(ExtendedFlow(Constant(0.3)))


def test_a_threshold_commits_every_sure_candidate() -> None:
    rules = replace(OURS, commit="before", commit_threshold=0.79)
    now = canvas([0.0, 0.2, 0.995, 0.0], [3, 4, 5, 6])
    seen = predictions([3, 4, 9, 6], [0.9, 0.8, 0.95, 0.5])
    _, event = ExtendedFlow(Constant(1 / 16), rules).step(now, seen, info(), SPACE)
    assert event.committed.tolist() == [[True, True, False, False]]


def test_a_row_that_turns_in_circles_is_ended_by_patience() -> None:
    """Two positions stay unsure: they are committed and taken back in turn."""
    rules = replace(OURS, reedit_margin=0.1, commit="before", max_idle_passes=3)
    flow = ExtendedFlow(Constant(1 / 16), rules)
    now, seen = canvas([0.0] * 3, [3, 4, 5]), predictions([3, 4, 5], [0.99, 0.6, 0.61])
    progress = []
    for step in range(12):
        now, _ = flow.step(now, seen, info(step, 20), SPACE)
        progress.append(now.progress[0, 1].item())
        if flow.stop(now).item():
            break
        assert not flow.stalled(now).any()
    assert flow.stalled(now).tolist() == [True]
    assert max(progress) == 1.0  # it was committed,
    assert min(progress[-3:]) < 0.9  # and taken back
    assert 5 <= len(progress) <= 8
    paper = Flow(Constant(1 / 16), replace(BARE, reedit_margin=0.1, commit="before"))
    assert not paper.stop(now).any()


def test_patience_lets_slow_progress_go_on() -> None:
    slow = ExtendedFlow(Constant(1 / 32), replace(OURS, max_idle_passes=2))
    [done] = generate(ToyModel(), prompts(1), decoder=slow, gen_length=5, budget=90)
    [same] = generate(
        ToyModel(), prompts(1), decoder=Flow(Constant(1 / 32), BARE), gen_length=5, budget=90
    )
    assert (done.passes, done.all_ids) == (same.passes, same.all_ids)
    assert done.reason is StopReason.CONVERGED


def test_a_stalled_row_says_so() -> None:
    flow = make_decoder("flow:constant:1/16", {"reedit_margin": 0.01, "max_idle_passes": 1})
    found = generate(ToyModel(2, sharpness=2.0), prompts(6), decoder=flow, gen_length=12)
    assert any(done.reason is StopReason.STALLED for done in found)
    assert all("got any further" in d.stop_reason for d in found if d.reason is StopReason.STALLED)


def test_the_flow_commits_what_is_jointly_sure_among_the_unsettled() -> None:
    now = canvas([0.2, 0.2, 0.995], [3, 4, 5])
    seen = predictions([6, 7, 8], [0.95, 0.6, 0.99])
    still = ExtendedFlow(Constant(0.0), replace(OURS, commit="before", commit_entropy=0.0))
    assert still.step(now, seen, info(), SPACE)[1].committed[0].tolist() == [True, False, False]
    more = replace(still, rules=replace(still.rules, commit_entropy=10.0))
    after, event = more.step(now, seen, info(), SPACE)
    assert event.committed[0].tolist() == [True, True, False]
    assert after.progress[0].tolist() == pytest.approx([1.0, 1.0, 0.995])


def test_trust_in_the_token_held_takes_a_settled_one_back() -> None:
    """The prediction is sure, but of another token than the one that the state has reached."""
    now = canvas([1.0, 1.0], [3, 4])
    seen = predictions([8, 4], [0.95, 0.95])
    kept, _ = Flow(Constant(0.25), replace(BARE, reedit_margin=0.1)).step(now, seen, info(), SPACE)
    assert kept.progress.tolist() == [[1.0, 1.0]]
    torch.testing.assert_close(kept.state, now.state)
    rules = replace(OURS, reedit_margin=0.1, trust="held")
    after, event = ExtendedFlow(Constant(0.25), rules).step(now, seen, info(), SPACE)
    assert event.reedited.tolist() == [[True, False]]
    assert after.progress[0].tolist() == pytest.approx([0.95, 1.0])
    expected = 0.95 * SPACE.table[8] + 0.05 * SPACE.mask
    torch.testing.assert_close(after.state[0, 0], expected, atol=1e-5, rtol=1e-5)


def test_confirmed_rows_stop_one_pass_after_they_arrived() -> None:
    plain, confirmed = (
        generate(
            ToyModel(),
            prompts(3),
            decoder=ExtendedFlow(Constant(0.5), rules),
            gen_length=7,
            budget=20,
        )
        for rules in (OURS, replace(OURS, confirm=True))
    )
    assert [done.passes + 1 for done in plain] == [done.passes for done in confirmed]


def test_a_row_is_not_confirmed_by_a_pass_that_takes_something_back() -> None:
    flow = ExtendedFlow(Constant(0.25), replace(OURS, reedit_margin=0.1, confirm=True))
    now = canvas([1.0], [3])
    doubted, _ = flow.step(now, predictions([3], [0.5]), info(), SPACE)
    assert not flow.stop(doubted).any()
    sure, _ = flow.step(now, predictions([3], [0.95]), info(), SPACE)
    assert flow.stop(sure).all()

"""The flow against its closed forms, one rule at a time."""

from dataclasses import replace
from math import ceil, log

import pytest
import torch
from flow_scene import BARE, SPACE, canvas, info, predictions
from toy import MASK, WIDTH, ToyModel, prompts

from xpredflow import Flow, Rules, generate
from xpredflow.engine.signals import jointly_sure, mixture, nearest_tokens, read
from xpredflow.policies.heuristic import Confidence, Constant, Jump
from xpredflow.types import Canvas


@pytest.mark.parametrize("a", [1 / 2, 1 / 3, 1 / 4, 1 / 16, 1 / 40, 0.9])
def test_constant_stops_after_the_closed_form(a: float) -> None:
    flow = Flow(Constant(a), BARE)
    steps = [
        done.passes
        for done in generate(ToyModel(), prompts(3), decoder=flow, gen_length=7, budget=95)
    ]
    assert steps == [ceil(log(0.1) / log(1 - a))] * 3


def test_a_constant_that_cannot_finish_uses_the_budget() -> None:
    done = generate(
        ToyModel(), prompts(1), decoder=Flow(Constant(1 / 64), BARE), gen_length=7, budget=64
    )
    assert done[0].passes == 64
    assert done[0].stop_reason == "the budget was used up"
    assert done[0].progress == pytest.approx([1 - (63 / 64) ** 64] * 7, abs=1e-5)


def test_state_is_the_blend_while_the_prediction_stays() -> None:
    tokens, flow = [3, 7, 9], Flow(Constant(0.3), BARE)
    now = canvas([0.0, 0.0, 0.0], tokens)
    for step in range(8):  # up to t = 0.94: beyond 0.95 the clamp slows the state down
        now, _ = flow.step(now, predictions(tokens, [0.9, 0.5, 0.2]), info(step), SPACE)
        t = now.progress.unsqueeze(-1)
        expected = t * SPACE.embed(torch.tensor([tokens])) + (1 - t) * SPACE.mask
        torch.testing.assert_close(now.state, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(now.progress, torch.full((1, 3), 1 - 0.7 ** (step + 1)))


def test_the_clamp_bounds_the_velocity_near_the_end() -> None:
    now = canvas([0.98], [3])
    after, _ = Flow(Constant(0.5), BARE).step(now, predictions([5], [0.9]), info(), SPACE)
    gain = 0.5 * 0.02 / 0.05
    target = SPACE.embed(torch.tensor([[5]]))
    torch.testing.assert_close(after.state, now.state + gain * (target - now.state))
    assert after.progress.item() == pytest.approx(0.99)


def test_reediting_resets_state_and_progress_to_the_confidence() -> None:
    now = canvas([0.9, 0.5, 1.0], [3, 4, 5])
    flow = Flow(Constant(0.25), replace(BARE, reedit_margin=0.1))
    after, event = flow.step(now, predictions([8, 4, 6], [0.6, 0.45, 0.85]), info(), SPACE)
    assert event.reedited.tolist() == [[True, False, True]]
    assert after.progress[0].tolist() == pytest.approx([0.6, 0.625, 0.85])
    expected = 0.6 * SPACE.table[8] + 0.4 * SPACE.mask
    torch.testing.assert_close(after.state[0, 0], expected, atol=1e-5, rtol=1e-5)
    assert event.moved is not None
    assert event.moved.tolist() == [[False, True, False]]


def test_reediting_may_judge_the_progress_after_the_update() -> None:
    now, seen = canvas([0.5], [3]), predictions([3], [0.6])
    rules = replace(BARE, reedit_margin=0.1)
    before, _ = Flow(Constant(0.9), rules).step(now, seen, info(), SPACE)
    after, _ = Flow(Constant(0.9), replace(rules, reedit_when="after")).step(
        now, seen, info(), SPACE
    )
    assert before.progress.item() == pytest.approx(0.95)
    assert after.progress.item() == pytest.approx(0.6)


@pytest.mark.parametrize(("when", "expected"), [("before", 0), ("after", 1), ("off", None)])
def test_commitment_takes_the_surest_unsettled_position(when, expected) -> None:
    now = canvas([0.2, 0.2, 0.995], [3, 4, 5])
    flow = Flow(Jump(0.9), replace(BARE, commit=when))
    after, event = flow.step(now, predictions([6, 7, 8], [0.95, 0.6, 0.99]), info(), SPACE)
    committed = event.committed[0].nonzero().flatten().tolist()
    assert committed == ([] if expected is None else [expected])
    assert after.progress[0, 0] == 1.0  # the jump itself
    assert (after.progress[0, 1] == 1.0) == (when == "after")


@pytest.mark.parametrize(
    ("bound", "expected"), [(0.0, [1]), (0.5, [0, 1]), (1.5, [0, 1, 2]), (9.0, [0, 1, 2])]
)
def test_commitment_may_take_all_that_are_jointly_sure(bound, expected) -> None:
    """Entropies 0.5, 0.3, 1.1 and, settled already, 0.1: a sum is bounded without its maximum."""
    open_ = torch.tensor([[True, True, True, False]])
    chosen = jointly_sure(torch.tensor([[0.5, 0.3, 1.1, 0.1]]), open_, bound)
    assert chosen[0].nonzero().flatten().tolist() == expected


def test_confidence_policy_never_takes_progress_back() -> None:
    now = canvas([0.2, 0.7, 1.0], [3, 4, 5])
    after, _ = Flow(Confidence(), BARE).step(now, predictions([3, 4, 5], [0.6] * 3), info(), SPACE)
    assert after.progress[0].tolist() == pytest.approx([0.6, 0.7, 1.0])


def test_frozen_positions_do_not_move() -> None:
    now = canvas([0.0, 0.0], [3, 4]).update(frozen=torch.tensor([[False, True]]))
    after, event = Flow(Jump(0.1)).step(now, predictions([6, 7], [0.5, 0.99]), info(), SPACE)
    torch.testing.assert_close(after.state[:, 1], now.state[:, 1])
    assert after.progress.tolist() == [[1.0, 0.0]]
    assert event.committed.tolist() == [[True, False]]
    assert Flow(Jump()).stop(after).item()


@pytest.mark.parametrize("k", [1, 2, 4, 8, None])
def test_readout_mixes_the_top_k_by_renormalised_probability(k: int | None) -> None:
    draw = torch.Generator().manual_seed(6)
    seen = read(3 * torch.randn(1, 2, len(SPACE.table), generator=draw), SPACE.special)
    probs = seen.whole.logits.index_fill(-1, torch.tensor([MASK]), -torch.inf).softmax(-1)
    if k is not None:
        kept = probs.topk(k, dim=-1)
        probs = torch.zeros_like(probs).scatter(-1, kept.indices, kept.values)
    expected = probs / probs.sum(-1, keepdim=True) @ SPACE.table
    torch.testing.assert_close(mixture(seen, SPACE.table, k), expected, atol=1e-5, rtol=1e-5)


def test_final_tokens_come_from_the_state_or_the_last_prediction() -> None:
    now = canvas([1.0, 0.4, 0.0], [3, 4, 5]).update(tokens=torch.tensor([[10, 11, 12]]))
    assert Flow(Confidence(), Rules(final="state")).finish(now, SPACE).tolist() == [[3, 4, 12]]
    assert Flow(Confidence(), Rules(final="prediction")).finish(now, SPACE).tolist() == [
        [10, 11, 12]
    ]


def test_nearest_tokens_in_pieces_is_the_same_and_never_the_mask() -> None:
    state = torch.randn(2, 50, WIDTH, generator=torch.Generator().manual_seed(3))
    state[0, 0] = SPACE.mask
    t = torch.ones(2, 50)
    now = Canvas(
        state, t, torch.zeros(2, 50, dtype=torch.long), torch.zeros(2, 50, dtype=torch.bool)
    )
    whole = nearest_tokens(now, SPACE)
    assert torch.equal(whole, nearest_tokens(now, SPACE, tokens_at_once=5))
    distance = torch.cdist(state, SPACE.table)
    distance[..., MASK] = torch.inf
    assert torch.equal(whole, distance.argmin(-1))

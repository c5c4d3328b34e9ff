"""States between mask and token as inputs of alignment: which positions move, and how far."""

from collections.abc import Callable

import torch
from own_answers import own_answers

from xpredflow.training.align.objective import XPrediction
from xpredflow.training.align.on_policy import EXPONENTS, PASSES, OnPolicyStates
from xpredflow.training.align.readout import Top
from xpredflow.training.common.answer_batches import text_batch
from xpredflow.training.common.masking import MaskedBatch, draw_masks
from xpredflow.training.common.start import Start
from xpredflow.types import SpecialTokens

SPECIAL = SpecialTokens(mask=3, eos=1)
TABLE = torch.arange(1000.0).unsqueeze(-1).repeat(1, 2)
TOKEN, CONFIDENCE = 7, 0.5


def noisy_rows() -> MaskedBatch:
    draw = torch.Generator().manual_seed(0)
    return draw_masks(text_batch(own_answers(4), SPECIAL, None), None, SPECIAL.eos, draw)


def predict_for(noisy: MaskedBatch):
    count = int(noisy.candidates.sum())

    def predict(state: torch.Tensor) -> Top:
        log = torch.full((count, 1), CONFIDENCE).log()
        return Top(torch.full((count, 1), TOKEN), log)

    return predict


def test_masked_positions_of_walked_rows_move_by_a_power_of_confidence() -> None:
    noisy = noisy_rows()
    on_policy = OnPolicyStates(
        torch.tensor([True, False, True, False]), torch.tensor([1.0, 1.0, 2.0, 2.0]), 3
    )
    start = TABLE[noisy.shown(SPECIAL.mask)]
    state = on_policy.states(start, noisy, TABLE, predict_for(noisy))
    for row, fraction in ((0, 0.5), (2, 0.25)):
        left = (1 - fraction) ** 3
        wanted = TABLE[TOKEN] + left * (TABLE[SPECIAL.mask] - TABLE[TOKEN])
        moved = state[row][noisy.masked[row]]
        torch.testing.assert_close(moved, wanted.expand_as(moved))
    still = ~(noisy.masked & on_policy.rows.unsqueeze(-1))
    assert torch.equal(state[still], start[still])


def test_rows_that_walk_begin_with_nothing_but_masks() -> None:
    noisy = noisy_rows()
    on_policy = OnPolicyStates(torch.tensor([True, False, True, False]), torch.ones(4), 1)
    started = on_policy.started(noisy)
    for row, walks in enumerate(on_policy.rows.tolist()):
        assert torch.equal(started.masked[row], (noisy.candidates if walks else noisy.masked)[row])


def test_a_block_moves_between_the_answer_and_masks() -> None:
    noisy, block = noisy_rows(), 4
    place = torch.tensor([0.5, 0.0, -0.5, 0.999])
    on_policy = OnPolicyStates(
        torch.tensor([True, True, True, False]), torch.ones(4), 1, block=block, place=place
    )
    started = on_policy.started(noisy)
    start = TABLE[started.shown(SPECIAL.mask)]
    state = on_policy.states(start, started, TABLE, predict_for(started))
    moved = (state != start).any(-1)
    for row in range(3):
        columns = noisy.candidates[row].nonzero().squeeze(-1)
        blocks = -(-len(columns) // block)
        which = int(place[row] * blocks) if place[row] >= 0 else 0
        first, end = which * block, (which + 1) * block if place[row] >= 0 else len(columns)
        assert started.masked[row, columns].tolist() == [n >= first for n in range(len(columns))]
        assert moved[row, columns].tolist() == [first <= n < end for n in range(len(columns))]
    assert torch.equal(started.masked[3], noisy.masked[3])
    assert not moved[3].any()


def test_half_of_the_rows_move_in_blocks_and_the_others_are_drawn_as_before() -> None:
    def drawn(block: int) -> OnPolicyStates:
        return OnPolicyStates.drawn(400, 0.5, torch.Generator().manual_seed(0), block=block)

    whole, blocks = drawn(0), drawn(32)
    assert torch.equal(whole.rows, blocks.rows)
    assert torch.equal(whole.exponent, blocks.exponent)
    assert blocks.place is not None
    assert 150 < int((blocks.place < 0).sum()) < 250


def test_only_rows_that_walk_are_passed_through(start_of: Callable[..., Start]) -> None:
    start = start_of("llada")
    model = start.load()
    batch = text_batch(start.answers[:4], model.special, model.block_size)
    draw = torch.Generator().manual_seed(0)
    noisy = draw_masks(batch, model.block_size, model.special.eos, draw)
    on_policy = OnPolicyStates(
        torch.tensor([False, True, False, True]), torch.tensor([1.0, 1.0, 4.0, 2.0]), 3
    )
    noisy, rows = on_policy.started(noisy), []
    hidden = model.hidden

    def counted(inputs: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        rows.append(len(inputs))
        return hidden(inputs, *rest)

    model.hidden = counted  # type: ignore[method-assign]  (a spy)
    XPrediction(model)(noisy, on_policy)
    assert rows == [2, 2, 2, 4]


def test_rows_walk_alike_alone_and_among_others(start_of: Callable[..., Start]) -> None:
    start = start_of("llada")
    model = start.load()
    batch = text_batch(start.answers[:4], model.special, model.block_size)
    draw = torch.Generator().manual_seed(0)
    noisy = draw_masks(batch, model.block_size, model.special.eos, draw)
    on_policy = OnPolicyStates(
        torch.tensor([False, True, False, True]), torch.tensor([1.0, 1.0, 4.0, 2.0]), 3
    )
    noisy, objective = on_policy.started(noisy), XPrediction(model)
    together = objective(noisy, on_policy).error.split(noisy.candidates.sum(-1).tolist())
    for row in range(4):
        only = torch.tensor([row])
        alone = objective(noisy.rows(only), on_policy.only(only)).error
        torch.testing.assert_close(alone, together[row])
    still = objective(noisy).error.split(noisy.candidates.sum(-1).tolist())
    assert not torch.allclose(still[1], together[1])
    torch.testing.assert_close(still[0], together[0])


def test_a_process_without_such_rows_passes_as_often_and_moves_nothing() -> None:
    on_policy = OnPolicyStates(torch.zeros(4, dtype=torch.bool), torch.ones(4), 2)
    assert on_policy.own().tolist() == [0]
    noisy = noisy_rows()
    part, start = noisy.rows(on_policy.own()), TABLE[noisy.shown(SPECIAL.mask)]
    here = start[:1, : part.ids.shape[1]]
    assert torch.equal(
        on_policy.only(on_policy.own()).states(here, part, TABLE, predict_for(part)), here
    )


def test_a_drawn_walk_is_the_same_again_and_shares_out_the_rows() -> None:
    one, two = (
        OnPolicyStates.drawn(4000, 0.25, torch.Generator().manual_seed(5)) for _ in range(2)
    )
    assert torch.equal(one.rows, two.rows)
    assert torch.equal(one.exponent, two.exponent)
    assert 0.2 < one.rows.float().mean() < 0.3
    assert set(one.exponent.tolist()) == set(EXPONENTS)
    passes = {
        OnPolicyStates.drawn(1, 0.5, torch.Generator().manual_seed(seed)).passes
        for seed in range(60)
    }
    assert passes == set(range(1, PASSES + 1))


def test_predictions_replace_three_quarters_of_a_row_as_dmax_trains() -> None:
    noisy = noisy_rows()
    drawn = OnPolicyStates.drawn(4, 0.5, torch.Generator().manual_seed(1), "predictions")
    assert (drawn.passes, drawn.masked, drawn.exponent.tolist()) == (1, 0.75, [0.0] * 4)
    states = OnPolicyStates(torch.tensor([True, False, True, False]), torch.zeros(4), 1, 0.75, 3)
    started = states.started(noisy)
    assert torch.equal(started.masked, states.started(noisy).masked)
    assert not (started.masked & ~noisy.candidates).any()
    assert torch.equal(started.masked[1::2], noisy.masked[1::2])
    start = TABLE[started.shown(SPECIAL.mask)]
    state = states.states(start, started, TABLE, predict_for(started))
    moved = started.masked & states.rows.unsqueeze(-1)
    assert (state[moved] == TABLE[TOKEN]).all()  # the predicted token itself
    assert torch.equal(state[~moved], start[~moved])
    # the share of a long row
    long = torch.ones(1, 20_000, dtype=torch.bool)
    wide = MaskedBatch(long.long(), long.long(), long, ~long, ~long, torch.ones(1))
    share = states.only(torch.tensor([0])).started(wide).masked.float().mean().item()
    assert abs(share - 0.75) < 0.02

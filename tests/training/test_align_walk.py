"""States between mask and token as inputs of alignment: which positions move, and how far."""

import torch
from own_answers import own_answers

from xpredflow.training.answer_batches import text_batch
from xpredflow.training.corruption import Corruption, corrupt
from xpredflow.training.readout import Top
from xpredflow.training.walk import EXPONENTS, PASSES, Walk
from xpredflow.types import SpecialTokens

SPECIAL = SpecialTokens(mask=3, eos=1)
TABLE = torch.arange(1000.0).unsqueeze(-1).repeat(1, 2)
TOKEN, CONFIDENCE = 7, 0.5


def noisy_rows() -> Corruption:
    draw = torch.Generator().manual_seed(0)
    return corrupt(text_batch(own_answers(4), SPECIAL, None), None, SPECIAL.eos, draw)


def predict_for(noisy: Corruption):
    count = int(noisy.candidates.sum())

    def predict(state: torch.Tensor) -> Top:
        log = torch.full((count, 1), CONFIDENCE).log()
        return Top(torch.full((count, 1), TOKEN), log)

    return predict


def test_masked_positions_of_walked_rows_move_by_a_power_of_confidence() -> None:
    noisy = noisy_rows()
    walk = Walk(torch.tensor([True, False, True, False]), torch.tensor([1.0, 1.0, 2.0, 2.0]), 3)
    start = TABLE[noisy.shown(SPECIAL.mask)]
    state = walk.states(start, noisy, TABLE, predict_for(noisy))
    for row, fraction in ((0, 0.5), (2, 0.25)):
        left = (1 - fraction) ** 3
        wanted = TABLE[TOKEN] + left * (TABLE[SPECIAL.mask] - TABLE[TOKEN])
        moved = state[row][noisy.masked[row]]
        torch.testing.assert_close(moved, wanted.expand_as(moved))
    still = ~(noisy.masked & walk.rows.unsqueeze(-1))
    assert torch.equal(state[still], start[still])


def test_a_drawn_walk_is_the_same_again_and_shares_out_the_rows() -> None:
    one, two = (Walk.drawn(4000, 0.25, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(one.rows, two.rows)
    assert torch.equal(one.exponent, two.exponent)
    assert 0.2 < one.rows.float().mean() < 0.3
    assert set(one.exponent.tolist()) == set(EXPONENTS)
    passes = {Walk.drawn(1, 0.5, torch.Generator().manual_seed(seed)).passes for seed in range(60)}
    assert passes == set(range(1, PASSES + 1))

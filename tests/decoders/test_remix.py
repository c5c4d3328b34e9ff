"""ReMix: mixtures at open positions while they are steady, the mask where they waver."""

from math import log

import pytest
import torch
from scene import SPACE, assert_same_decoding, at, believing, canvas_of, log_probs, sure

from xpredflow.decoders.remix import ReMix, divergence
from xpredflow.decoders.threshold import Threshold

E = SPACE.table
STEADY = {0: 0.5, 1: 0.3, 2: 0.2}
FIRST = believing(STEADY, sure(3, 0.8), sure(5, 0.95), sure(0, 0.85))


def test_the_divergence_of_opposites_is_log_two() -> None:
    one, other = (log_probs(believing({t: 1.0}, STEADY)) for t in (0, 1))
    assert divergence(one, other).tolist() == pytest.approx([log(2), 0], abs=1e-6)


def test_steady_positions_carry_their_mixture_and_wavering_ones_the_mask() -> None:
    canvas, _ = ReMix().step(canvas_of(*[None] * 4), FIRST, at(0), SPACE)
    torch.testing.assert_close(canvas.state[0, :2], SPACE.mask.expand(2, -1))  # no history yet
    second = believing(STEADY, sure(4, 0.8), sure(5, 0.95), sure(0, 0.85))
    canvas, _ = ReMix().step(canvas, second, at(1), SPACE)
    # the bound is 0.9: 0.5 + 0.3 fit, the rest stays at the mask
    mixed = 0.5 * E[0] + 0.3 * E[1] + 0.2 * SPACE.mask
    torch.testing.assert_close(canvas.state[0, 0], 0.5 * SPACE.mask + 0.5 * mixed)
    torch.testing.assert_close(canvas.state[0, 1], SPACE.mask)  # JS = 0.44
    torch.testing.assert_close(canvas.state[0, 2], E[5])  # committed at 0.95 ≥ 0.9


@pytest.mark.parametrize(
    ("probs", "weights"),
    [
        ([0.95, 0.05], [0.95]),  # the first always counts
        ([0.3, 0.25, 0.2, 0.15, 0.1], [0.3, 0.25]),  # up to 2·0.3
        ([0.6, 0.29, 0.06, 0.05], [0.6, 0.29]),  # up to 0.9
    ],
)
def test_the_mixture_takes_the_likeliest_up_to_a_bound(probs, weights) -> None:
    now = believing(dict(enumerate(probs)))
    expected = sum(w * E[i] for i, w in enumerate(weights)) + (1 - sum(weights)) * SPACE.mask
    torch.testing.assert_close(ReMix().mixed(now, SPACE)[0, 0], expected)


def test_without_a_mixture_it_is_threshold_decoding() -> None:
    assert_same_decoding(ReMix(threshold=0.6, beta=0.0), Threshold(threshold=0.6))

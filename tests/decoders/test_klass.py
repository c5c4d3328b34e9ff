"""KLASS: sure is not enough, the distribution must have stayed the same for two passes."""

from math import inf, log

import pytest
from scene import SPACE, assert_same_decoding, at, believing, canvas_of, committed, log_probs, sure

from xpredflow.decoders.klass import Klass, divergence
from xpredflow.decoders.threshold import Threshold

# the second position is sure in the end, but KL(0.94 ‖ 0.90) = 0.0102, KL(0.99 ‖ 0.94) = 0.033
PASSES = [
    believing(sure(0, 0.95), sure(1, wavering), sure(2, 0.97), sure(3, 0.96))
    for wavering in (0.90, 0.94, 0.99)
]


def decode(decoder: Klass) -> list[list[int]]:
    canvas, seen = canvas_of(None, None, None, None), []
    for step, signals in enumerate(PASSES):
        canvas, event = decoder.step(canvas, signals, at(step), SPACE)
        seen.append(event.committed[0].nonzero().flatten().tolist())
    return seen


def test_the_divergence_is_that_of_now_from_before() -> None:
    now, before = log_probs(PASSES[2]), log_probs(PASSES[1])
    expected = 0.99 * log(0.99 / 0.94) + 0.01 * log(0.01 / 0.06)
    assert divergence(now, before).tolist() == pytest.approx([0, expected, 0, 0], abs=1e-6)


def test_only_the_stable_position_is_committed_once_there_is_a_history() -> None:
    # no history yet: the quota (one per pass) takes the surest, then the next
    assert decode(Klass()) == [[2], [3], [0]]


def test_without_a_bound_on_the_divergence_confidence_decides_from_the_third_pass_on() -> None:
    assert decode(Klass(kl_threshold=inf)) == [[2], [3], [0, 1]]


def test_a_shorter_history_is_satisfied_earlier() -> None:
    assert decode(Klass(history=1)) == [[2], [0, 3], [1]]


def test_nothing_sure_falls_back_to_the_even_quota() -> None:
    canvas, _ = Klass(threshold=0.99).step(canvas_of(*[None] * 4), PASSES[0], at(0, 2), SPACE)
    assert committed(canvas) == [2, 3]


@pytest.mark.parametrize("threshold", [0.3, 0.9])
def test_without_history_it_is_threshold_decoding(threshold: float) -> None:
    assert_same_decoding(
        Klass(threshold=threshold, history=0, kl_threshold=inf), Threshold(threshold=threshold)
    )

"""dInfer's hierarchy and credit by hand."""

from math import exp, log

import pytest
from scene import SPACE, assert_same_decoding, at, believing, canvas_of, committed, sure

from xpredflow.decoders.dinfer import Credit, Hierarchy
from xpredflow.decoders.threshold import Threshold


@pytest.mark.parametrize(
    ("confidences", "low", "expected"),
    [
        ((0.5, 0.45, 0.6, 0.56), 0.4, [0, 3]),  # the surest of both runs
        ((0.6, 0.55, 0.51, 0.52), 0.55, [0]),  # the second run is not sure enough
        ((0.53, 0.52, 0.51, 0.54), 0.7, [4]),  # no run is: the surest of all
        ((0.93, 0.95, 0.51, 0.52), 0.4, [0, 1, 4]),  # everything above the threshold
    ],
)
def test_runs_of_open_positions_are_led_by_their_surest(confidences, low, expected) -> None:
    a, b, c, d = confidences
    seen = believing(
        {0: a, 1: 1 - a} if a >= 0.5 else {0: a, 1: 0.3, 2: 0.7 - a},
        {0: b, 1: 1 - b} if b >= 0.5 else {0: b, 1: 0.3, 2: 0.7 - b},
        sure(3, 0.99),
        sure(0, c),
        sure(0, d),
    )
    canvas = canvas_of(None, None, 3, None, None)
    done, _ = Hierarchy(low_threshold=low).step(canvas, seen, at(0), SPACE)
    assert [i for i in committed(done) if i != 2] == expected


def test_credit_raises_what_was_predicted_before() -> None:
    seen, decoder = believing(sure(0, 0.6), sure(1, 0.99), sure(2, 0.98)), Credit(threshold=1.0)
    canvas, first = decoder.step(canvas_of(None, None, None), seen, at(0), SPACE)
    _, second = decoder.step(canvas, seen, at(1), SPACE)
    earned = 0.6**0.2
    for event, credit in ((first, earned), (second, 0.8 * earned + earned)):
        odds = 0.6 / 0.4 * exp(0.7 * log(1 + credit))
        assert event.signals.confidence[0, 0].item() == pytest.approx(odds / (1 + odds), abs=1e-6)


def test_what_is_committed_earns_no_credit() -> None:
    seen = believing(sure(0, 0.6), sure(1, 0.99))
    canvas, _ = Credit().step(canvas_of(0, None), seen, at(0), SPACE)
    assert canvas.memory["credit"][0, 0].tolist() == [0] * 8
    assert canvas.memory["credit"][0, 1, 1].item() == pytest.approx(0.99**0.2)


def test_without_weight_credit_is_threshold_decoding() -> None:
    assert_same_decoding(Credit(threshold=0.6, weight=0.0), Threshold(threshold=0.6))

"""Entropies by hand: H(1) = 0, H(0.9) = 0.325, H(0.8) = 0.5004, H(0.51) = 0.693."""

import pytest
from scene import SPACE, at, believing, canvas_of, committed, sure
from toy import ToyModel, prompts

from xpredflow import generate
from xpredflow.decoders.entropy import EntropyBounded, EntropyThreshold

SEEN = believing(sure(0, 0.51), sure(1, 0.9), sure(2, 0.8), {3: 1.0})
OPEN = canvas_of(None, None, None, None)


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [(0.0, [3]), (0.33, [1, 3]), (0.5, [1, 3]), (0.51, [1, 2, 3]), (float("inf"), [0, 1, 2, 3])],
)
def test_what_is_at_most_the_threshold_is_committed(threshold, expected) -> None:
    done, _ = EntropyThreshold(threshold=threshold).step(OPEN, SEEN, at(0), SPACE)
    assert committed(done) == expected
    assert done.tokens.tolist() == [[0, 1, 2, 3]]


def test_the_lowest_entropy_is_always_committed() -> None:
    done, _ = EntropyThreshold(threshold=0.1).step(
        canvas_of(None, None, None, 3), SEEN, at(0), SPACE
    )
    assert committed(done) == [1, 3]


@pytest.mark.parametrize(
    ("gamma", "expected"),
    # open: 0.325, 0.5004, 0.693; before each of them: 0, 0.325, 0.8255
    [(0.0, [1, 3]), (0.32, [1, 3]), (0.33, [1, 2, 3]), (0.82, [1, 2, 3]), (0.83, [0, 1, 2, 3])],
)
def test_the_bound_is_on_the_sum_without_the_largest(gamma, expected) -> None:
    done, _ = EntropyBounded(gamma=gamma).step(canvas_of(None, None, None, 3), SEEN, at(0), SPACE)
    assert committed(done) == expected


def test_no_entropy_is_free() -> None:
    done, _ = EntropyBounded(gamma=0.0).step(OPEN, SEEN, at(0), SPACE)
    assert committed(done) == [1, 3]  # the certain one costs nothing, so one more fits


def test_a_bound_of_zero_commits_one_per_pass() -> None:
    for done in generate(ToyModel(), prompts(2), decoder="eb:0", gen_length=8, trace=True):
        assert [sum(frame.committed) for frame in done.trace or ()] == [1] * 8

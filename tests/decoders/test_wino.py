"""WINO: wide drafts, verified by shadows that cannot see the token they judge."""

from dataclasses import replace

import pytest
import torch
from scene import SPACE, assert_same_decoding, at, believing, canvas_of, committed, sure
from toy import ToyModel, prompts

from xpredflow import generate
from xpredflow.decoders.threshold import Threshold
from xpredflow.decoders.wino import Wino

OWN = believing(sure(0, 0.99), sure(1, 0.99), sure(2, 0.7), sure(3, 0.65))
SHADOW = believing({0: 0.95, 1: 0.05}, {1: 0.5, 0: 0.5}, sure(2, 0.7), sure(3, 0.65))
SEEN = replace(OWN, shadow=SHADOW)


def test_a_draft_that_its_shadow_doubts_is_taken_back() -> None:
    before = canvas_of(0, 1, None, None, accepted=2)
    done, event = Wino().step(before, SEEN, at(1), SPACE)
    assert committed(done) == [0, 2, 3]  # 0.7 and 0.65 are drafted, 0.5 < 0.9 is taken back
    assert event.reedited.tolist() == [[False, True, False, False]]
    assert event.committed.tolist() == [[False, False, True, True]]
    torch.testing.assert_close(done.state[0, 1], SPACE.mask)
    assert done.memory["accepted"].tolist() == [2]


@pytest.mark.parametrize(
    ("accepted", "kept"),
    [(1, [0, 1, 2, 3]), (2, [0, 2, 3]), (3, [2, 3])],
)
def test_fewer_are_taken_back_than_were_committed_before(accepted: int, kept: list[int]) -> None:
    doubts = believing({0: 0.8, 1: 0.2}, {1: 0.3, 0: 0.7}, sure(2, 0.7), sure(3, 0.65))
    before = canvas_of(0, 1, None, None, accepted=accepted)
    done, _ = Wino().step(before, replace(OWN, shadow=doubts), at(1), SPACE)
    assert committed(done) == kept  # the worst goes first


def test_nothing_is_taken_back_for_a_single_commitment_or_in_the_last_pass() -> None:
    single = canvas_of(0, 1, 2, None, accepted=9)
    assert committed(Wino().step(single, SEEN, at(1), SPACE)[0]) == [0, 1, 2, 3]
    several = canvas_of(0, 1, None, None, accepted=9)
    assert committed(Wino().step(several, SEEN, at(99), SPACE)[0]) == [0, 1, 2, 3]


@pytest.mark.parametrize("threshold", [0.3, 0.6])
def test_without_doubts_it_is_threshold_decoding(threshold: float) -> None:
    assert_same_decoding(
        Wino(threshold=threshold, threshold_back=0.0), Threshold(threshold=threshold)
    )


def test_the_longer_passes_are_counted() -> None:
    shared = {"gen_length": 9, "block_length": 4, "stop_at_eos": False}
    model = ToyModel()
    [done] = generate(model, prompts(1), decoder="wino", **shared)
    assert done.shadow_positions * 2 == model.positions_read
    assert done.shadow_positions >= done.passes
    assert generate(ToyModel(), prompts(1), decoder="threshold", **shared)[0].shadow_positions == 0


def test_tokens_are_taken_back_on_the_way() -> None:
    done = generate(ToyModel(1), prompts(4, 1), decoder="wino", gen_length=16, trace=True)
    assert any(any(frame.reedited) for row in done for frame in row.trace or ())

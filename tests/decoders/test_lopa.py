"""LoPA: branches that hold one more token each are read beside the anchor; the best goes on."""

from dataclasses import replace

import pytest
import torch
from scene import SPACE, assert_same_decoding, at, believing, canvas_of, committed, sure
from toy import ToyModel, prompts

from xpredflow import generate
from xpredflow.decoders.lopa import LoPA
from xpredflow.decoders.threshold import Threshold
from xpredflow.types import Canvas, Signals

UNSURE = believing(sure(0, 0.95), sure(1, 0.6), sure(2, 0.8), sure(3, 0.7))


def after_a_pass(branches: int = 2) -> Canvas:
    """Position 0 is committed; 2 and then 3 are the surest of what is left."""
    blank = canvas_of(None, None, None, None)
    seen = replace(UNSURE, branches=(UNSURE,) * branches)
    return LoPA(branches=branches).step(blank, seen, at(0), SPACE)[0]


def saying(c: float, tokens: tuple[int, ...] = (0, 1, 2, 3)) -> Signals:
    return believing(*(sure(token, c) for token in tokens))


def test_branches_hold_the_surest_of_what_is_open_one_each() -> None:
    canvas = after_a_pass()
    assert committed(canvas) == [0]
    first, second = LoPA().fork(canvas, SPACE)
    assert (committed(first), committed(second)) == ([0, 2], [0, 3])
    assert first.tokens[0, 2] == 2
    torch.testing.assert_close(first.state[0, 2], SPACE.embed(torch.tensor(2)))
    torch.testing.assert_close(first.state[0, 3], SPACE.mask)


def test_one_open_position_is_left_to_be_judged() -> None:
    canvas = after_a_pass(branches=5)
    held = [committed(branch) for branch in LoPA(branches=5).fork(canvas, SPACE)]
    assert held == [[0, 2], [0, 3], [0], [0], [0]]


@pytest.mark.parametrize(
    ("anchor", "first", "second", "held"),
    [(0.6, 0.7, 0.8, [0, 1, 3]), (0.6, 0.8, 0.7, [0, 1, 2]), (0.8, 0.8, 0.7, [0, 1])],
)
def test_the_branch_whose_open_positions_are_surest_goes_on(
    anchor: float, first: float, second: float, held: list[int]
) -> None:
    """What it says is what is committed next: position 1, the surest by order of equals."""
    seen = replace(saying(anchor), branches=(saying(first, (0, 4, 2, 3)), saying(second)))
    canvas, event = LoPA().step(after_a_pass(), seen, at(1), SPACE)
    assert committed(canvas) == held
    assert event.committed[0].nonzero().flatten().tolist() == held[1:]
    assert canvas.tokens[0, 1] == (4 if held == [0, 1, 2] else 1)
    torch.testing.assert_close(
        event.signals.confidence.max(), torch.tensor(max(anchor, first, second))
    )


@pytest.mark.parametrize("threshold", [0.3, 0.9])
def test_without_branches_it_is_threshold_decoding(threshold: float) -> None:
    assert_same_decoding(LoPA(threshold=threshold, branches=0), Threshold(threshold=threshold))


def test_what_the_branches_read_is_counted() -> None:
    model = ToyModel()
    done = generate(model, prompts(1), decoder="lopa:0.9+branches=3", gen_length=9)[0]
    assert done.shadow_positions == 3 * 9 * done.passes
    assert model.positions_read == done.positions_read == 4 * 9 * done.passes
    assert model.passes == done.passes


def test_looking_ahead_saves_passes() -> None:
    def passes(decoder: str) -> int:
        found = generate(ToyModel(2), prompts(8, 2), decoder=decoder, gen_length=24)
        return sum(done.passes for done in found)

    assert passes("lopa:0.9+branches=4") < passes("threshold:0.9")

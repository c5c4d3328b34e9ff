"""SchED's early exit: the bound falls with the budget; a sure row ends with its predictions."""

import copy
from math import cos, exp, log, pi

import pytest
import torch
from scene import SPACE, at, believing, canvas_of, committed, sure
from toy import MASK, ToyModel, prompts

from xpredflow import InputError, StopReason, effective_settings, generate
from xpredflow.decoders import DECODERS
from xpredflow.decoders.early_exit import EarlyExit, ExitRule
from xpredflow.decoders.mask import MaskPrediction
from xpredflow.decoders.wino import Wino
from xpredflow.engine.request import resolve

GAP = log(0.9 / 0.1)  # of sure(token, 0.9)


@pytest.mark.parametrize(
    ("schedule", "left"),
    [("linear", lambda p: 1 - p), ("cosine", lambda p: (1 + cos(pi * p)) / 2)],
)
def test_the_bound_falls_from_high_to_low(schedule, left) -> None:
    rule = ExitRule(early_exit=schedule, early_exit_high=6.0, early_exit_low=1.0)
    for p in (0.0, 0.3, 0.5, 1.0):
        assert rule.bound(torch.tensor([p])).item() == pytest.approx(1 + 5 * left(p), abs=1e-5)
    steep = ExitRule(early_exit="exp", early_exit_high=6.0, early_exit_slope=3.0)
    assert steep.bound(torch.tensor([0.5])).item() == pytest.approx(6 * exp(-1.5), abs=1e-5)


def test_a_row_exits_when_its_mean_margin_reaches_the_bound() -> None:
    # at pass 2 of 4 half the budget is used up: the bound is half of its beginning
    seen = believing(sure(2, 0.9), sure(3, 0.9), {4: 0.5, 1: 0.5})
    for high, exits in ((2 * GAP * 2 / 3 - 0.01, True), (2 * GAP * 2 / 3 + 0.01, False)):
        decoder = EarlyExit(MaskPrediction(), ExitRule(early_exit_high=high))
        canvas, event = decoder.step(canvas_of(None, None, None), seen, at(1, 4), SPACE)
        assert decoder.stop(canvas).tolist() == [exits]
        assert decoder.exited(canvas).tolist() == [exits]
        assert (committed(canvas) == [0, 1, 2]) == exits
        assert event.committed.all().item() == exits
        if exits:
            assert decoder.finish(canvas, SPACE)[0, :2].tolist() == [2, 3]
            torch.testing.assert_close(canvas.state, SPACE.embed(canvas.tokens))


def test_what_is_done_has_not_exited() -> None:
    decoder = EarlyExit(MaskPrediction(), ExitRule(early_exit_high=0.0))
    canvas, _ = decoder.step(canvas_of(None), believing(sure(2, 0.9)), at(0, 1), SPACE)
    assert decoder.stop(canvas).tolist() == [True]
    assert decoder.exited(canvas).tolist() == [False]


@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_takes_it(name: str) -> None:
    def run(**options):
        return generate(ToyModel(2), prompts(4), decoder=name, gen_length=14, **options)

    plain, never = run(), run(early_exit="linear", early_exit_high=500, early_exit_low=500)
    assert [(d.all_ids, d.passes) for d in plain] == [(d.all_ids, d.passes) for d in never]
    at_once = run(early_exit="cosine", early_exit_high=0)
    assert all(d.passes == 1 for d in at_once)
    assert all(MASK not in d.all_ids for d in at_once)
    for before, after in zip(plain, run(early_exit="exp", early_exit_high=4), strict=True):
        assert after.passes <= before.passes
        assert (after.reason is StopReason.EARLY_EXIT) or after.all_ids == before.all_ids


def test_the_settings_state_it_and_a_misspelt_one_is_refused() -> None:
    _, decoder = resolve("threshold:0.8", {"early_exit": "cosine", "early_exit_low": "2.5"})
    said = effective_settings(decoder)
    assert (said["decoder"], said["threshold"]) == ("threshold", 0.8)
    assert (said["early_exit"], said["early_exit_low"]) == ("cosine", 2.5)
    assert "early_exit_slope" in said
    _, plain = resolve("threshold:0.8", {})
    assert "early_exit" not in effective_settings(plain)
    with pytest.raises(InputError, match="early_exit is 'square'"):
        resolve("mask", {"early_exit": "square"})
    with pytest.raises(InputError, match=r"early_exit_low is 2\.0, but early_exit is off"):
        resolve("mask", {"early_exit_low": 2})


def test_it_says_what_its_decoder_says() -> None:
    around = EarlyExit(Wino(), ExitRule())
    assert around.shadows
    assert around.revises
    assert copy.deepcopy(around).rule == around.rule
    assert not hasattr(around, "stalled")

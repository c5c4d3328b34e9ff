"""LLaDA2.1's editing: placed tokens give way to surer ones until nothing changes."""

import torch
from scene import SPACE, assert_same_decoding, at, believing, canvas_of, committed, sure

from xpredflow.decoders.editing import Editing
from xpredflow.decoders.threshold import Threshold


def test_a_surer_token_overwrites_and_a_filled_row_goes_on_until_nothing_changes() -> None:
    decoder = Editing()
    seen = believing({2: 0.92, 0: 0.08}, {2: 0.89, 1: 0.11}, sure(3, 0.6))
    canvas, event = decoder.step(canvas_of(0, 1, None), seen, at(0), SPACE)
    assert canvas.tokens.tolist() == [[2, 1, 3]]  # 0.89 is not above 0.9
    assert event.reedited.tolist() == [[True, False, False]]
    assert committed(canvas) == [0, 1, 2]
    torch.testing.assert_close(canvas.state, SPACE.embed(canvas.tokens))
    assert decoder.stop(canvas).tolist() == [False]
    agreed = believing(sure(2, 0.92), sure(1, 0.99), sure(3, 0.95))
    canvas, event = decoder.step(canvas, agreed, at(1), SPACE)
    assert not event.reedited.any()
    assert decoder.stop(canvas).tolist() == [True]


def test_endless_changes_are_cut_off() -> None:
    decoder, canvas = Editing(max_post_steps=2), canvas_of(0)
    stops = []
    for step, token in enumerate((1, 2, 3)):
        canvas, _ = decoder.step(canvas, believing(sure(token, 0.99)), at(step), SPACE)
        stops.append(decoder.stop(canvas).item())
    assert stops == [False, True, True]


def test_what_is_placed_in_a_pass_is_not_edited_in_it() -> None:
    canvas, event = Editing().step(canvas_of(None), believing(sure(4, 0.99)), at(0), SPACE)
    assert (canvas.tokens.tolist(), event.reedited.any().item()) == ([[4]], False)


def test_no_edits_is_threshold_decoding() -> None:
    for threshold in (0.3, 0.95):
        assert_same_decoding(
            Editing(threshold=threshold, edit_threshold=1.1), Threshold(threshold=threshold)
        )

"""DMax: a sure prefix is placed, placed tokens are renewed and read as soft tokens."""

import torch
from scene import SPACE, at, believing, canvas_of, committed, sure

from xpredflow.decoders.dmax import DMax

E, M = SPACE.table, SPACE.mask


def soft(token: int, c: float) -> torch.Tensor:
    """By hand: the mixture with the mask, as long as its parts are on average."""
    mixed = c * E[token] + (1 - c) * M
    return mixed / mixed.norm() * (c * E[token].norm() + (1 - c) * M.norm())


def test_the_longest_sure_prefix_of_the_open_positions_is_placed() -> None:
    seen = believing(sure(0, 0.6), sure(1, 0.55), sure(2, 0.9), sure(3, 0.52), sure(4, 0.99))
    for threshold, placed in ((0.5, [0, 1, 2, 3, 4]), (0.54, [0, 1, 2]), (0.58, [0]), (0.7, [0])):
        canvas, event = DMax(threshold=threshold).step(canvas_of(*[None] * 5), seen, at(0), SPACE)
        assert committed(canvas) == placed
        assert event.committed[0].nonzero().flatten().tolist() == placed
    # what is placed already does not end the prefix, however unsure it is now
    canvas, _ = DMax(threshold=0.58).step(canvas_of(None, 1, None, None, None), seen, at(0), SPACE)
    assert committed(canvas) == [0, 1, 2]


def test_placed_positions_hold_their_present_prediction_softly() -> None:
    seen = believing(sure(0, 0.6), sure(5, 0.55), sure(3, 0.3 + 0.25))
    canvas, event = DMax(threshold=0.58).step(canvas_of(None, 1, None), seen, at(0), SPACE)
    assert canvas.tokens[0, :2].tolist() == [0, 5]
    assert event.reedited.tolist() == [[False, True, False]]
    torch.testing.assert_close(canvas.state[0, 0], soft(0, 0.6), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(canvas.state[0, 1], soft(5, 0.55), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(canvas.state[0, 2], M)


def test_a_row_ends_when_nothing_changes_or_everything_is_sure() -> None:
    decoder = DMax(threshold=0.0)
    unsure = believing(sure(2, 0.6), sure(3, 0.7))
    canvas, _ = decoder.step(canvas_of(None, None), unsure, at(0), SPACE)
    assert decoder.stop(canvas).tolist() == [False]
    canvas, event = decoder.step(canvas, unsure, at(1), SPACE)
    assert not event.reedited.any()
    assert decoder.stop(canvas).tolist() == [True]
    clear = believing(sure(2, 0.95), sure(4, 0.91))
    canvas, event = decoder.step(canvas_of(2, 3), clear, at(1), SPACE)
    assert event.reedited.tolist() == [[False, True]]
    assert decoder.stop(canvas).tolist() == [True]
    assert decoder.finish(canvas, SPACE).tolist() == [[2, 4]]


def test_a_row_that_ends_sure_leaves_nothing_open() -> None:
    decoder = DMax(threshold=1.0)
    clear = believing(sure(2, 0.95), sure(4, 0.91))
    canvas, _ = decoder.step(canvas_of(None, None), clear, at(0), SPACE)
    assert decoder.stop(canvas).tolist() == [True]
    assert committed(canvas) == [0, 1]

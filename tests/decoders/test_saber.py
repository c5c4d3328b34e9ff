"""Saber: the bar is the mean of past commitments, the largest drops are opened again."""

from scene import SPACE, at, believing, canvas_of, committed, sure

from xpredflow.decoders.saber import Saber


def test_two_passes_by_hand() -> None:
    first = believing(sure(0, 0.9), sure(1, 0.8), sure(2, 0.6), sure(3, 0.5))
    canvas, event = Saber().step(canvas_of(*[None] * 4), first, at(0), SPACE)
    # nothing was committed before: the two surest, of which the weaker is opened again
    assert committed(canvas) == [0]
    assert event.reedited.tolist() == [[False, True, False, False]]
    assert event.committed.tolist() == [[True, False, False, False]]
    second = believing(sure(0, 0.7), sure(1, 0.86), sure(2, 0.87), sure(3, 0.84))
    canvas, event = Saber().step(canvas, second, at(1), SPACE)
    # the bar is (0.9 + 0.8)/2 = 0.85; position 0 fell from 0.9 to 0.7
    assert committed(canvas) == [1, 2]
    assert event.reedited.tolist() == [[True, False, False, False]]


def test_one_in_eight_is_opened_again() -> None:
    many = believing(*(sure(0, 0.9 - i / 100) for i in range(18)))
    before = canvas_of(*[None] * 18, commitment=[0.5] + [0.0] * 17)
    canvas, event = Saber().step(before, many, at(1), SPACE)
    assert event.reedited[0].nonzero().flatten().tolist() == []  # all were filled: done
    some = believing(*(sure(0, 0.9 - i / 100) for i in range(17)), {0: 0.4, 1: 0.3, 2: 0.3})
    canvas, event = Saber().step(before, some, at(1), SPACE)
    assert event.reedited[0].nonzero().flatten().tolist() == [14, 15, 16]  # ⌈17/8⌉
    assert committed(canvas) == list(range(14))


def test_a_single_commitment_stays() -> None:
    seen = believing(sure(0, 0.9), sure(1, 0.2), sure(2, 0.3))
    canvas, _ = Saber(n=1).step(canvas_of(None, None, None), seen, at(0), SPACE)
    assert committed(canvas) == [0]

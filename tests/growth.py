"""Whether work grows as the text that it is done on does: the text is doubled, again and again.

Seconds say nothing on a busy machine; how they grow does. They are the thread's own, and a text is
read again before it is believed that it takes too long.
"""

import time
from collections.abc import Callable
from typing import Any

SHORTEST, LONGEST = 64, 65_536  # characters
DOUBLINGS = 4  # over which growth is measured: linear work takes 16 times as long, quadratic 256
MOST = 64  # times; between the two
NOISE = 0.02  # seconds below which nothing can be said
TRIES = 4


def assert_linear(read: Callable[[str], Any], head: str, piece: str) -> None:
    """`read` takes `head` and many of `piece`; short texts come first, so that this ends."""
    seconds: dict[int, float] = {}
    length = SHORTEST
    while length <= LONGEST:
        text = head + piece * (length // len(piece) + 1)
        seconds[length] = _seconds(read, text)
        before = length >> DOUBLINGS
        for _ in range(TRIES):
            if before not in seconds or seconds[length] < max(NOISE, MOST * seconds[before]):
                break
            seconds[length] = min(seconds[length], _seconds(read, text))
        else:
            growth = seconds[length] / seconds[before]
            raise AssertionError(
                f"{piece!r} behind {head!r}: {1 << DOUBLINGS} times the text, up to {length}"
                f" characters, took {growth:.0f} times the work"
            )
        length *= 2


def _seconds(read: Callable[[str], Any], text: str) -> float:
    started = time.thread_time()
    read(text)
    return time.thread_time() - started

"""Recorded rows on a terminal, in lock-step by pass: play, pause, step, go back, faster, slower."""

import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from xpredflow.watch.picture import DIM
from xpredflow.watch.terminal import Column, SideBySide

PASSES_PER_SECOND = 4.0
SLOWEST, FASTEST = 1 / 16, 64.0
HELP = "space: play or pause · ← →: one pass · home end · - +: speed · q: quit"
# What terminals send for keys without a letter.
KEYS = {
    b" ": "play",
    b"\x1b[D": "back",
    b"\x1b[C": "forth",
    b"\x1b[H": "first",
    b"\x1b[1~": "first",
    b"\x1b[F": "last",
    b"\x1b[4~": "last",
    b"-": "slower",
    b"+": "faster",
    b"=": "faster",
    b"q": "quit",
    b"\x1b": "quit",
}
# Waits so long for a key (None: as long as it takes) and names what it means; None: no key came.
ReadKey = Callable[[float | None], str | None]


class Keyboard(AbstractContextManager["Keyboard"]):
    """Keys as they are pressed, without Enter; the terminal is as before when it is left."""

    def __enter__(self) -> "Keyboard":
        import termios
        import tty

        self.file = sys.stdin.fileno()
        self.before = termios.tcgetattr(self.file)
        tty.setcbreak(self.file)
        return self

    def __exit__(self, *_: object) -> None:
        import termios

        termios.tcsetattr(self.file, termios.TCSADRAIN, self.before)

    def read(self, wait: float | None) -> str | None:
        """A key's meaning, `other` for one that has none."""
        ready, _, _ = select.select([self.file], [], [], wait)
        return KEYS.get(os.read(self.file, 16), "other") if ready else None


class Replay:
    """Plays from the first pass; without keys it ends with the last one."""

    def __init__(
        self,
        columns: list[Column],
        console: Console,
        *,
        speed: float = 1.0,
        keys: ReadKey | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.screen = SideBySide(columns, console)
        self.console, self.keys, self.sleep = console, keys, sleep
        self.speed, self.passes, self.playing = speed, 0, True

    def run(self) -> None:
        """Until somebody quits, or nobody could."""
        if not self.console.is_terminal or self.console.is_dumb_terminal:
            self.screen.play()
            return
        with Live(self.render(), console=self.console, auto_refresh=False) as live:
            while self.keys is not None or self.playing:
                key = self._wait()
                if key == "quit":
                    break
                self.act(key)
                live.update(self.render(), refresh=True)
            live.update(self.screen.render(self.passes, marks=False), refresh=True)

    def _wait(self) -> str | None:
        pause = 1 / (PASSES_PER_SECOND * self.speed) if self.playing else None
        if self.keys is not None:
            return self.keys(pause)
        self.sleep(pause or 0.0)
        return None

    def act(self, key: str | None) -> None:
        """What a key does; None: a pass's time is over."""
        if key == "play":
            self.playing = not self.playing
            if self.playing and self.passes >= self.screen.last:
                self.passes = 0
        elif key in ("slower", "faster"):
            factor = 2.0 if key == "faster" else 0.5
            self.speed = min(max(self.speed * factor, SLOWEST), FASTEST)
        elif key in ("back", "forth", "first", "last"):
            self.playing = False
            places = {"back": self.passes - 1, "forth": self.passes + 1, "first": 0}
            self._go(places.get(key, self.screen.last))
        elif key is None and self.playing:
            self._go(self.passes + 1)
            self.playing = self.passes < self.screen.last

    def _go(self, passes: int) -> None:
        self.passes = min(max(passes, 0), self.screen.last)

    def render(self) -> Group:
        """The columns, where the replay stands, and the keys."""
        state = "playing" if self.playing else "paused"
        line = f"pass {self.passes} of {self.screen.last}, {state}, speed {self.speed:g}×"
        parts: list[Any] = [self.screen.render(self.passes), Text(line, style=DIM)]
        if self.keys is not None:
            parts.append(Text(HELP, style=DIM, overflow="ellipsis", no_wrap=True))
        return Group(*parts)

"""What a case came to: fine, refused in words, or failed; and the count of them."""

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from xpredflow import InputError

SECONDS = 20  # of the processor, after which a case counts as hanging, however busy the machine is


class Hang(BaseException):
    """A case that did not end; no Exception, so that nothing on the way takes it for an error."""


class Wrong(Exception):
    """A case that ended without an error, with something that it should not have made."""


@dataclass
class Tally:
    """One part of the battery."""

    part: str
    tried: int = 0
    accepted: int = 0
    refused: int = 0
    failed: list[str] = field(default_factory=list)

    def run(self, name: str, case: Callable[[], Any]) -> None:
        """Try one case; anything but an InputError, and a hang, is a failure."""
        self.tried += 1
        try:
            with _limited(SECONDS):
                case()
            self.accepted += 1
        except InputError:
            self.refused += 1
        except (Exception, Hang) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
            self.failed.append(f"{name}: {type(error).__name__}: {str(error)[:200]} ({place})")

    def line(self) -> str:
        clean = self.accepted + self.refused
        return (
            f"{self.part:<10} tried {self.tried:>5}   clean {clean:>5}"
            f" ({self.accepted} worked, {self.refused} refused)   failed {len(self.failed)}"
        )


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Hang(f"no end after {seconds} s of computing")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

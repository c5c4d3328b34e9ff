"""What was counted on the simulated accelerator, and where in the source it happened."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import xpredflow

SOURCE = Path(xpredflow.__file__).parent
OPEN: list["Counts"] = []


@dataclass
class Counts:
    """Each by where it happened; `kernels` by operation."""

    waits: Counter[str] = field(default_factory=Counter)
    uploads: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)

    @property
    def syncs(self) -> int:
        """How often the host waited for the device."""
        return self.waits.total()

    @property
    def copies(self) -> int:
        """Copies from the host to the device."""
        return self.uploads.total()

    @property
    def launches(self) -> int:
        """Operations that would start a kernel: neither views nor allocations."""
        return self.kernels.total()

    def __str__(self) -> str:
        parts = {"syncs": self.waits, "copies to the device": self.uploads, "kernels": self.kernels}
        return "\n".join(
            f"{counter.total()} {what}: "
            + ", ".join(f"{count} × {where}" for where, count in counter.most_common())
            for what, counter in parts.items()
        )


@contextmanager
def counting() -> Iterator[Counts]:
    """Everything that happens inside is counted."""
    counts = Counts()
    OPEN.append(counts)
    try:
        yield counts
    finally:
        OPEN.remove(counts)


def place_in_source(operation: str) -> str:
    """The innermost line of the package that asked for this."""
    frame = sys._getframe()
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(SOURCE):
            return f"{file.relative_to(SOURCE)}:{frame.f_lineno} ({operation})"
        frame = frame.f_back
    return f"outside the package ({operation})"

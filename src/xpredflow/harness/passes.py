"""Forward passes per answer: the harness has no column for them, so they are kept here."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from xpredflow.errors import InputError
from xpredflow.jsonl import write_lines


@dataclass(frozen=True)
class Answered:
    """What one answer cost; `doc` is its number in the task."""

    task: str | None
    doc: int | None
    passes: int
    tokens: int
    stop_reason: str


@dataclass
class Passes:
    """The answers so far, and the file they are written to if one was asked for."""

    path: Path | None = None
    answers: list[Answered] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path is None:
            return
        self.path = self.path.expanduser()
        if self.path.is_dir() or not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise InputError(
                f"passes_file {str(self.path)!r} cannot be written: give a file in a directory that"
                " exists and that you may write to"
            )

    def add(self, answered: list[Answered]) -> None:
        """Keep them, on disk too."""
        self.answers += answered
        if self.path is not None:
            write_lines(self.path, map(asdict, self.answers))

    def by_task(self) -> dict[str, dict[str, Any]]:
        """A summary per task."""
        used: dict[str, list[int]] = {}
        for answer in self.answers:
            used.setdefault(str(answer.task), []).append(answer.passes)
        return {
            task: {
                "answers": len(counts),
                "mean": fmean(counts),
                "median": median(counts),
                "max": max(counts),
            }
            for task, counts in used.items()
        }

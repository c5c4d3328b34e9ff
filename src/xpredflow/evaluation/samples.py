"""What is evaluated, the samples that come of it, and where they are kept."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from glob import escape
from pathlib import Path
from typing import Any

from xpredflow.engine.request import DEFAULT_DECODER
from xpredflow.errors import InputError
from xpredflow.evaluation.identity import differences
from xpredflow.jsonl import JsonLines, Line, as_record, read_lines
from xpredflow.tasks.generated.splits import HELD_OUT


@dataclass(frozen=True)
class Job:
    """What is evaluated; two jobs that are equal give the same samples.

    `data` tells one's own problems apart from what their file held before; `identity` does so for
    the weights and everything else that has the same name as something else (see identity.py).
    """

    task: str
    split: str = "validation"
    decoder: str = DEFAULT_DECODER
    options: dict[str, Any] = field(default_factory=dict)
    limit: int = HELD_OUT
    samples: int = 1
    model: str = ""
    template: str | None = None
    data: str = ""
    identity: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("limit", "samples"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: give a whole number ≥ 1")


@dataclass(frozen=True)
class Sample:
    """One answer and its verdict; `number` is problem × samples + draw.

    `read` are the positions that its passes predicted. `seconds` passed since the answer before it
    was judged: alone they say little, over all samples they add up to the time that was taken.
    """

    number: int
    problem: str
    prompt: str
    answer: str
    passed: bool
    reason: str
    passes: int
    tokens: int
    seed: int
    read: int = 0
    seconds: float = field(default=0.0, compare=False)


class Records:
    """Samples on disk, one line each behind a line that says what they are samples of."""

    def __init__(self, path: Path | None, job: Job) -> None:
        self.store: JsonLines | None = None
        self.done: dict[int, Sample] = {}
        if path is None:
            return
        header = {"job": _plain(job)}
        before = read_lines(path)
        if before and (changed := _changed(before[0], header)):
            raise InputError(
                f"{str(path)!r} holds samples of another evaluation ({changed}): choose another"
                " place for the samples, or repeat that evaluation as it was to go on with it"
            )
        self.store = JsonLines(path, header)
        # what another number of processes did before, each in a file of its own
        for other in sorted(path.parent.glob(f"{escape(path.name.split('.')[0])}.*jsonl")):
            lines = self.store.lines if other == path else _lines_of(other, header)
            self.done |= {sample.number: sample for sample in _samples(lines, other)}

    def add(self, sample: Sample) -> None:
        """Keep a sample; on disk before it counts as done."""
        if self.store is not None:
            self.store.append(asdict(sample))
        self.done[sample.number] = sample


def _plain(job: Job) -> Line:
    """The job as it is read back from a file."""
    try:
        return json.loads(json.dumps(asdict(job)))
    except TypeError as error:
        raise InputError(
            f"the options of this evaluation cannot be written to a file ({error}): give decoders"
            " and policies by name, or leave out `out`"
        ) from error


def _changed(line: Line, header: Line) -> str:
    """What differs between two jobs; what an older file says nothing of is as by default."""
    try:
        then = asdict(as_record(Job, line["job"], "the first line"))
    except (KeyError, TypeError, AttributeError, InputError):
        return f"its first line is {str(line)[:120]}"
    return differences(then, header["job"]) or ("" if then == header["job"] else "its options")


def _lines_of(path: Path, header: Line) -> list[Line]:
    lines = read_lines(path)
    return lines[1:] if lines and not _changed(lines[0], header) else []


def _samples(lines: list[Line], path: Path) -> Iterator[Sample]:
    for number, line in enumerate(lines, start=2):
        try:
            yield as_record(Sample, line, "its object")
        except InputError as error:
            raise InputError(
                f"{path}, line {number} is no sample ({error}): it was written by another version;"
                " choose another place for the samples"
            ) from error

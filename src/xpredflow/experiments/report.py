"""A table as it is written: Markdown with the paper's figures beside ours, JSON, a picture."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import Outcome
from xpredflow.experiments.inputs import Inputs
from xpredflow.files import make_directory, write_atomically

NO_PICTURE = (
    "There is no picture, because matplotlib is not installed: pip install 'xpredflow[plot]'."
)


@dataclass(frozen=True)
class Report:
    """One finished table. `draw` makes its picture and says whether it could."""

    title: str
    header: list[str]
    rows: list[list[str]]
    data: dict[str, Any]
    outcomes: list[Outcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    more: list[str] = field(default_factory=list)  # further blocks of Markdown below the table
    rules: list[str] = field(default_factory=list)  # a line per set of rules that was in force
    draw: Callable[[Path], bool] | None = None


class Table(Protocol):
    """A table by name: which inputs it cannot do without, and how it is made.

    One that `decodes` grades answers; the others only look at a model or a log.
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def needs(self) -> tuple[str, ...]: ...

    @property
    def decodes(self) -> bool: ...

    def make(self, bench: Bench, inputs: Inputs) -> Report: ...


@dataclass(frozen=True)
class Probe:
    """A table that decodes nothing, made by a function of its own."""

    name: str
    title: str
    needs: tuple[str, ...]
    probe: Callable[[Bench, Inputs], Report]
    decodes: ClassVar[bool] = False

    def make(self, bench: Bench, inputs: Inputs) -> Report:
        """The report of the models or the run that was given."""
        return self.probe(bench, inputs)


def write(report: Report, name: str, out: Path, command: str) -> str:
    """OUT/NAME.md, .json and .png where there is a picture; the Markdown."""
    make_directory(out)
    picture = None
    if report.draw is not None:
        picture = f"{name}.png" if report.draw(out / f"{name}.png") else ""
    text = markdown(report, command, picture)
    write_atomically(out / f"{name}.md", text)
    write_atomically(out / f"{name}.json", json.dumps(record(report, name, command), indent=2))
    return text


def record(report: Report, name: str, command: str) -> dict[str, Any]:
    """The report as plain values."""
    return {
        "table": name,
        "title": report.title,
        "command": command,
        **report.data,
        "claims": [outcome._asdict() for outcome in report.outcomes],
        "notes": report.notes,
    }


def markdown(report: Report, command: str, picture: str | None = None) -> str:
    """The report as a page; `picture` is its file, '' where it could not be drawn."""
    table = grid(report.header, report.rows)
    parts = [f"# {report.title}", f"Made with `{command}`.", table, *report.more]
    if picture:
        parts.append(f"![{report.title}]({picture})")
    notes = report.notes + ([NO_PICTURE] if picture == "" else [])
    if notes:
        parts.append("\n".join(f"- {note}" for note in notes))
    if report.rules:
        parts += ["## Rules in force", "\n".join(f"- {line}" for line in report.rules)]
    if report.outcomes:
        parts += ["## The paper's claims on our models", "\n".join(map(_line, report.outcomes))]
    return "\n\n".join(parts) + "\n"


def _line(outcome: Outcome) -> str:
    verdict = "Holds" if outcome.holds else "**Does not hold**"
    return f"- {outcome.where}. {verdict}: {outcome.sentence}."


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its columns aligned so that it reads well on a terminal too."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in [header, *rows]]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])])

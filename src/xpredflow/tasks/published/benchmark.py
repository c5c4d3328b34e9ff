"""What the published benchmarks share: rows, splits, and prompt templates by name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from xpredflow.errors import InputError, unknown_name
from xpredflow.tasks.base import Problem, Runner, Verdict
from xpredflow.tasks.rows import Rows, read_rows

Message = dict[str, str]


@dataclass(frozen=True)
class Template:
    """How a problem is asked and how the answer is found in the text. Rankings flip with it."""

    # of a row and the worked examples before it: text, or the turns of a chat
    ask: Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], str | list[Message]]
    extract: Callable[[str], str]
    few_shot: bool = True


class Benchmark(ABC):
    """A fixed list of published problems."""

    name: str
    response_length: int  # tokens, as in LLaDA's published evaluation
    runs_programs: bool = True  # whether `score` needs a Runner
    hub_id: ClassVar[str]
    fields: ClassVar[Mapping[str, type]]  # what a row must have, and of which type
    templates: ClassVar[Mapping[str, Template]]
    splits: ClassVar[tuple[str, ...]] = ("test",)

    def __init__(self, path: str | Path | None = None, template: str | None = None) -> None:
        """`path` is a file or a hub id; without it the rows come from the original hub dataset."""
        self.source = self.hub_id if path is None else path
        self.template = self._known(template or next(iter(self.templates)))

    def prompts(self, split: str = "test", template: str | None = None) -> list[Problem]:
        """All problems of a split, in the published order."""
        name = self._known(template or self.template)
        return [self._problem(row, name) for row in self.rows(split)]

    def problem(self, split: str, index: int) -> Problem:
        rows = self.rows(split)
        if not 0 <= index < len(rows):
            raise InputError(f"no problem {index} in {self.name} {split}: 0 to {len(rows) - 1}")
        return self._problem(rows[index], self.template)

    def size(self, split: str) -> int:
        return len(self.rows(split))

    def count_problems(self) -> int:
        return sum(len(self.rows(split)) for split in self.splits)

    def rows(self, split: str) -> Rows:
        if split not in self.splits:
            raise unknown_name("split", split, self.splits)
        return self._rows[split]

    def extract(self, problem: Problem, text: str) -> str:
        """The answer in a generated text, found as the problem's template says."""
        return self.templates[problem.meta["template"]].extract(text)

    @abstractmethod
    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict: ...

    @abstractmethod
    def published_answer(self, problem: Problem) -> str:
        """The benchmark's own solution, written the way the template's extraction expects it."""

    @abstractmethod
    def _grading(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """What grading needs, plain JSON."""

    @abstractmethod
    def _load(self) -> dict[str, Rows]:
        """Rows by split."""

    @cached_property
    def _rows(self) -> dict[str, Rows]:
        return self._load()

    def _read(self, *hub_files: str) -> Rows:
        return read_rows(self.source, hub_files, self.fields)

    def _id(self, row: Mapping[str, Any]) -> str:
        return f"{self.name}/{row['task_id']}"

    @cached_property
    def shots(self) -> Rows:
        """The rows that few-shot templates show first: read from the data, never kept here."""
        return []

    @cached_property
    def _by_id(self) -> dict[str, Mapping[str, Any]]:
        return {self._id(row): row for rows in self._rows.values() for row in rows}

    def _problem(self, row: Mapping[str, Any], template: str) -> Problem:
        chosen = self.templates[template]
        shots = self.shots if chosen.few_shot else []
        try:
            asked = chosen.ask(row, shots)
            meta = {"template": template, **self._grading(row)}
        # whatever a row holds that is no question, no number or no program
        except (ValueError, SyntaxError, LookupError, TypeError, AttributeError) as error:
            raise InputError(
                f"{self.source}: the row {str(row)[:80]} is no problem of {self.name}"
                f" ({type(error).__name__}: {str(error)[:80]}): download the file again"
            ) from error
        if isinstance(asked, str):
            return Problem(self._id(row), asked, 1, meta)
        text = "\n".join(message["content"] for message in asked)
        return Problem(self._id(row), text, 1, {**meta, "messages": asked})

    def _known(self, template: str) -> str:
        if template not in self.templates:
            raise unknown_name("prompt template", template, self.templates)
        return template

"""A task from a file: a row per problem, with what is asked, what is right, and how it is graded.

{"prompt": "What is 2 + 3?", "answer": 5, "grader": "number"}

Fields: `prompt` or `messages`; `answer`; `grader`, unless one is named for the whole file;
`choices`; `tests`, `entry_point` and `setup` of programs; and if wanted `id`, `split`, `solution`
(a right answer to show) and `response_length`. A file with other names for them says which.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError, unknown_name
from xpredflow.tasks.base import (
    RESPONSE_LENGTH,
    Message,
    Problem,
    Runner,
    SimpleTask,
    Verdict,
    needs_runner,
)
from xpredflow.tasks.graders import GRADERS, Fields, program_of
from xpredflow.tasks.rows import FILES, Row, rows_of_file

FIELDS = (
    *("prompt", "messages", "answer", "grader", "choices", "tests", "entry_point", "setup"),
    *("id", "split", "solution", "response_length"),
)
Columns = Mapping[str, str]


def is_task_file(name: str) -> bool:
    """Whether a task is given as the path of a file of rows."""
    return name.endswith(FILES)


class FileTask(SimpleTask):
    """Problems of a file, each graded as its row or the file says; checked whole when it is made.

    `columns` maps our names of fields to the file's: {"prompt": "question", "answer": "gold"}.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        columns: Columns | None = None,
        grader: str | None = None,
        response_length: int | None = None,
    ) -> None:
        file = Path(path).expanduser()
        rows = rows_of_file(file)
        fields = [_fields(row, dict(columns or {})) for row in rows]
        _check_columns(file, rows, dict(columns or {}))
        if grader is not None and grader not in GRADERS:
            raise unknown_name("grader", grader, GRADERS)
        self.name = file.name.partition(".")[0]
        self._problems = [
            _problem(row, grader, f"{self.name}/{number}") for number, row in enumerate(fields)
        ]
        self.runs_programs = any(p.meta["grader"] == "python" for p in self._problems)
        self.response_length = _length(fields, response_length)
        given = f"{sorted((columns or {}).items())} {grader} {self.response_length}"
        self.digest = blake2b(file.read_bytes() + given.encode(), digest_size=8).hexdigest()

    def problems(self) -> Iterable[Problem]:
        return self._problems

    def grade(self, problem: Problem, text: str) -> Verdict:
        return GRADERS[problem.meta["grader"]].grade(problem.meta, text)

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """A program by `run`, everything else by its grader."""
        if problem.meta["grader"] == "python":
            return needs_runner(self.name, run)(program_of(text), problem.meta)
        return self.grade(problem, text)


def has_grader(rows: Iterable[Row], columns: Columns | None = None) -> bool:
    """Whether rows say how they are graded: without, they are prompts and no task."""
    column = dict(columns or {}).get("grader", "grader")
    return any(row.values.get(column) is not None for row in rows)


def asked(fields: Fields) -> str | list[Message]:
    """What a row asks: its text, or its conversation less the last answer."""
    text, turns = fields.values.get("prompt"), fields.values.get("messages")
    if isinstance(text, str) and text:
        return text
    turns = text if isinstance(text, list) else turns
    if turns is None:
        raise InputError(
            f"{fields.where} has neither a text in 'prompt' nor a conversation in 'messages': its"
            f" fields are {', '.join(fields.values) or 'none'}"
        )
    name = "prompt" if isinstance(text, list) else "messages"
    if not isinstance(turns, list) or not all(map(_is_message, turns)):
        raise fields.fail(name, 'expected [{"role": "user", "content": "..."}]')
    said = [{"role": turn["role"], "content": turn["content"]} for turn in turns]
    while said and said[-1]["role"] == "assistant":
        said.pop()
    if not said:
        raise fields.fail(name, "no question is left without its last answer")
    return said


def _is_message(turn: Any) -> bool:
    return isinstance(turn, dict) and all(isinstance(turn.get(k), str) for k in ("role", "content"))


def _fields(row: Row, columns: dict[str, str]) -> Fields:
    """The row by our names; a column that was mapped is not looked for under its own name."""
    return Fields(row.where, {**row.values, **{n: row.values.get(c) for n, c in columns.items()}})


def _check_columns(file: Path, rows: list[Row], columns: dict[str, str]) -> None:
    for name, column in columns.items():
        if name not in FIELDS:
            raise unknown_name("field", name, FIELDS, f" in --column {name}={column}")
        if not any(column in row.values for row in rows):
            raise unknown_name("column", column, {c for r in rows for c in r.values}, f" of {file}")


def _problem(fields: Fields, grader: str | None, name: str) -> Problem:
    question = asked(fields)
    chosen = fields.values.get("grader") or grader
    if not isinstance(chosen, str) or chosen not in GRADERS:
        raise fields.fail("grader", f"choose {', '.join(GRADERS)}, or give one with --grader")
    meta: dict[str, Any] = {"grader": chosen, **GRADERS[chosen].prepare(fields)}
    split = fields.values.get("split")
    if split is not None:
        if not isinstance(split, str) or not split:
            raise fields.fail("split", "give a name such as train, validation or test")
        meta["split"] = split
    given = fields.values.get("id")
    text = question if isinstance(question, str) else question[-1]["content"]
    if not isinstance(question, str):
        meta["messages"] = question
    return Problem(name if given is None else str(given), text, 1, meta)


def _length(fields: list[Fields], response_length: int | None) -> int:
    """As given, else the longest that a row asks for."""
    asked_for = [] if response_length is None else [response_length]
    for row in fields if response_length is None else []:
        value = row.values.get("response_length")
        if value is not None and (type(value) is not int or value < 1):
            raise row.fail("response_length", "give a whole number ≥ 1")
        asked_for += [] if value is None else [value]
    if response_length is not None and response_length < 1:
        raise InputError(f"response_length is {response_length}: give a whole number ≥ 1")
    return max(asked_for, default=RESPONSE_LENGTH)

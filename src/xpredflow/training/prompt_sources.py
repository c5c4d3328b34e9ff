"""Where prompts for training come from: a task's training split, a file of rows, a hub dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from xpredflow.engine.prompts import Prompt
from xpredflow.errors import InputError
from xpredflow.models.digests import short
from xpredflow.tasks import BENCHMARKS, TASKS, Task, is_own, make_task
from xpredflow.tasks.base import Runner, Verdict, prompt_of
from xpredflow.tasks.graders import Fields
from xpredflow.tasks.own import asked, has_grader, is_task_file
from xpredflow.tasks.rows import Row, read_rows, rows_of_file, training_files


@runtime_checkable
class PromptSource(Protocol):
    """Numbered prompts, and a judge of answers where there is one."""

    @property
    def response_length(self) -> int | None: ...  # that its answers need; None: unknown

    @property
    def judges(self) -> bool: ...

    @property
    def runs_programs(self) -> bool: ...

    @property
    def digest(self) -> str: ...  # of a file that may change under its name

    def __len__(self) -> int: ...

    def name(self, number: int) -> str:
        """What the prompt belongs to: a task, a file."""
        ...

    def prompt(self, number: int) -> Prompt: ...

    def judge(self, number: int, text: str, run: Runner | None) -> Verdict | None: ...


class TaskPrompts:
    """Training problems, the tasks in turn: problem n of the task that n falls to.

    Held-out problems cannot be among them: splits are disjoint by meaning. `split` may be another
    one to train on, such as `people` of the generated tasks.
    """

    judges = True

    def __init__(self, tasks: tuple[Task, ...], split: str = "train") -> None:
        self.tasks, self.split = tasks, split
        self.response_length = max(task.response_length for task in tasks)
        self.runs_programs = any(task.runs_programs for task in tasks)
        known = [getattr(task, "digest", "") for task in tasks]
        self.digest = " ".join(filter(None, [*known, "" if split == "train" else split]))

    def __len__(self) -> int:
        return min(task.size(self.split) for task in self.tasks)

    def name(self, number: int) -> str:
        return self._task(number).name

    def prompt(self, number: int) -> Prompt:
        return prompt_of(self._task(number).problem(self.split, number))

    def judge(self, number: int, text: str, run: Runner | None) -> Verdict | None:
        task = self._task(number)
        return task.score(task.problem(self.split, number), text, run)

    def _task(self, number: int) -> Task:
        return self.tasks[number % len(self.tasks)]


class RowPrompts:
    """Rows with a text in `prompt` or a conversation in `messages`, less its last answer."""

    judges = runs_programs = False
    response_length = None

    def __init__(
        self, source: str, rows: Sequence[Row], columns: Mapping[str, str] | None = None
    ) -> None:
        self.source = source
        named = [
            {**row.values, **{n: row.values.get(c) for n, c in (columns or {}).items()}}
            for row in rows
        ]
        self.prompts = [
            asked(Fields(row.where, values)) for row, values in zip(rows, named, strict=True)
        ]
        self.digest = short(*map(str, self.prompts))

    def __len__(self) -> int:
        return len(self.prompts)

    def name(self, number: int) -> str:
        return self.source

    def prompt(self, number: int) -> Prompt:
        return self.prompts[number]

    def judge(self, number: int, text: str, run: Runner | None) -> Verdict | None:
        return None


def prompt_source(
    data: str | Task,
    *,
    columns: Mapping[str, str] | None = None,
    grader: str | None = None,
    response_length: int | None = None,
) -> PromptSource:
    """Tasks separated by commas (names, mine.jsonl, mine.py:MyTask), rows without a grader in a
    .jsonl, .jsonl.gz, .json or .parquet file, or a hub dataset; of tasks, the training split.
    """
    if not isinstance(data, str):
        return TaskPrompts((data,))
    names = [name.strip() for name in data.split(",")]
    held_out = [name for name in names if name in BENCHMARKS]
    if held_out:
        trainable = [name for name in TASKS if name not in BENCHMARKS]
        raise InputError(
            f"{held_out[0]!r} is for evaluation and is never trained on: choose from"
            f" {', '.join(trainable)}, or give a file or a hub dataset of your own"
        )
    if len(names) == 1 and is_task_file(data) and grader is None:
        rows = rows_of_file(Path(data).expanduser())
        if not has_grader(rows, columns):
            return RowPrompts(data, rows, columns)
    if all(name in TASKS or is_own(name) for name in names):
        of_file = {"columns": columns, "grader": grader, "response_length": response_length}
        made = [make_task(n, **(of_file if is_task_file(n) else {})) for n in names]  # type: ignore[arg-type]
        for task in made:
            if task.size("train") < 1:
                raise InputError(f"task {task.name!r} has no problem in its split 'train'")
        return TaskPrompts(tuple(made))
    if "/" not in data:
        trainable = [name for name in TASKS if name not in BENCHMARKS]
        raise InputError(
            f"no prompts {data!r}: expected a task ({', '.join(trainable)}, mine.jsonl or"
            " mine.py:MyTask), the path of a .jsonl, .jsonl.gz, .json or .parquet file, or a"
            " dataset on the hub such as allenai/tulu-3-sft-personas-code"
        )
    found = read_rows(data, training_files(data), {})
    rows = [Row(f"{data}, row {number}", row) for number, row in enumerate(found, start=1)]
    return RowPrompts(data, rows, columns)

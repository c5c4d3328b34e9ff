"""Where prompts for training come from: a task's training split, a file of lines, a hub dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from xpredflow.engine.prompts import Prompt
from xpredflow.errors import InputError
from xpredflow.tasks import BENCHMARKS, TASKS
from xpredflow.tasks.base import Generated, Runner, Verdict, prompt_of
from xpredflow.tasks.published.rows import read_rows, training_files


@runtime_checkable
class PromptSource(Protocol):
    """Numbered prompts, and a judge of answers where there is one."""

    @property
    def response_length(self) -> int | None: ...  # that its answers need; None: unknown

    @property
    def judges(self) -> bool: ...

    @property
    def runs_programs(self) -> bool: ...

    def __len__(self) -> int: ...

    def name(self, number: int) -> str:
        """What the prompt belongs to: a task, a file."""
        ...

    def prompt(self, number: int) -> Prompt: ...

    def judge(self, number: int, text: str, run: Runner | None) -> Verdict | None: ...


class TaskPrompts:
    """Training problems, the tasks in turn: problem n of the task that n falls to.

    Held-out problems cannot be among them: splits are disjoint by meaning.
    """

    judges = True

    def __init__(self, tasks: tuple[Generated, ...]) -> None:
        self.tasks = tasks
        self.response_length = max(task.response_length for task in tasks)
        self.runs_programs = any(task.runs_programs for task in tasks)

    def __len__(self) -> int:
        return min(task.size("train") for task in self.tasks)

    def name(self, number: int) -> str:
        return self._task(number).name

    def prompt(self, number: int) -> Prompt:
        return prompt_of(self._task(number).problem("train", number))

    def judge(self, number: int, text: str, run: Runner | None) -> Verdict | None:
        task = self._task(number)
        return task.score(task.problem("train", number), text, run)

    def _task(self, number: int) -> Generated:
        return self.tasks[number % len(self.tasks)]


class RowPrompts:
    """Rows with a text in `prompt` or a conversation in `messages`, less its last answer."""

    judges = runs_programs = False
    response_length = None

    def __init__(self, source: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.source = source
        self.prompts = [_prompt(row, number, source) for number, row in enumerate(rows, start=1)]

    def __len__(self) -> int:
        return len(self.prompts)

    def name(self, number: int) -> str:
        return self.source

    def prompt(self, number: int) -> Prompt:
        return self.prompts[number]

    def judge(self, number: int, text: str, run: Runner | None) -> Verdict | None:
        return None


def prompt_source(data: str) -> PromptSource:
    """Task names separated by commas, the path of a .jsonl or .parquet file, or a hub dataset."""
    names = [name.strip() for name in data.split(",")]
    if all(name in TASKS for name in names):
        return TaskPrompts(tuple(TASKS[name]() for name in names))
    held_out = [name for name in names if name in BENCHMARKS]
    if held_out:
        raise InputError(
            f"{held_out[0]!r} is for evaluation and is never trained on: choose from"
            f" {', '.join(TASKS)}, or give a file or a hub dataset of your own"
        )
    if not Path(data).expanduser().is_file() and "/" not in data:
        raise InputError(
            f"no prompts {data!r}: expected a task ({', '.join(TASKS)}), the path of a .jsonl,"
            " .jsonl.gz or .parquet file, or a dataset on the hub such as"
            " allenai/tulu-3-sft-personas-code"
        )
    files = () if Path(data).expanduser().is_file() else training_files(data)
    return RowPrompts(data, read_rows(data, files, ()))


def _prompt(row: Mapping[str, Any], number: int, source: str) -> Prompt:
    text, messages = row.get("prompt"), row.get("messages")
    if isinstance(text, str) and text:
        return text
    if isinstance(text, list):
        messages = text
    if isinstance(messages, list) and messages:
        asked = [{"role": m["role"], "content": m["content"]} for m in messages]
        while asked and asked[-1]["role"] == "assistant":
            asked.pop()
        if asked:
            return asked
    raise InputError(
        f"{source}, row {number} has neither a text in 'prompt' nor a conversation in 'messages':"
        f" its fields are {', '.join(row) or 'none'}"
    )

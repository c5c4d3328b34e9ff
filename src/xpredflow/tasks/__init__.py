"""Tasks: prompts in, verdicts out. They know nothing of models.

A task has a name (`minimath`, one that was registered, one of a plug-in), or is one's own: a file
of rows, `mine.jsonl`, or a class, `mine.py:MyTask`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from xpredflow.errors import InputError, unknown_name
from xpredflow.registry import TASKS
from xpredflow.tasks.base import (
    Generated,
    Problem,
    Runner,
    SimpleTask,
    Task,
    Verdict,
    prompt_of,
    right_answer,
)
from xpredflow.tasks.generated.longcode.task import LongCode
from xpredflow.tasks.generated.longmath.task import LongMath
from xpredflow.tasks.generated.minicode.task import MiniCode
from xpredflow.tasks.generated.minimath.task import MiniMath
from xpredflow.tasks.graders import GRADERS
from xpredflow.tasks.own import FileTask, is_task_file
from xpredflow.tasks.published.benchmark import Benchmark
from xpredflow.tasks.published.gsm8k import Gsm8k
from xpredflow.tasks.published.humaneval import HumanEval
from xpredflow.tasks.published.mbpp import Mbpp
from xpredflow.tasks.python_file import build, is_python_task, load_task

_GENERATED = {made.name: made for made in (MiniCode, MiniMath, LongCode, LongMath)}


@cache
def _generated(name: str, draw: int = 0) -> Generated:
    """One instance each: a task draws its held-out problems on first use and keeps them."""
    return _GENERATED[name](draw)


GENERATED: dict[str, Callable[[], Generated]] = {}
for _name in _GENERATED:
    GENERATED[_name] = partial(_generated, _name)
    TASKS.register(_name, summary=_GENERATED[_name].__doc__ or "")(GENERATED[_name])
# Published problems, from a file or the hub: they are evaluated on, never trained on.
BENCHMARKS: dict[str, type[Benchmark]] = {"humaneval": HumanEval, "mbpp": Mbpp, "gsm8k": Gsm8k}
for _name, _class in BENCHMARKS.items():
    TASKS.register(_name)(_class)


def is_own(name: str) -> bool:
    """Whether a task is given as a file of the user's."""
    return is_task_file(name) or is_python_task(name)


def make_task(
    name: str,
    data: str | None = None,
    template: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    grader: str | None = None,
    response_length: int | None = None,
    draw: int = 0,
) -> Task:
    """A task by its name, from a file of rows, or from a class in a Python file.

        make_task("minimath")
        make_task("longmath", draw=2)
        make_task("gsm8k", data="test.jsonl", template="zero-shot")
        make_task("mine.jsonl", columns={"prompt": "question"}, grader="number")
        make_task("mine.py:MyTask")

    The published ones take `data`, a file or hub id, and a prompt `template`; a file of rows takes
    `columns`, `grader` and `response_length`. Of a generated one, every `draw` other than 0 has
    validation and test problems of its own, disjoint by meaning from all others.
    """
    if draw and name not in GENERATED:
        raise InputError(
            f"draw is {draw} but task {name!r} has one list of problems: leave it out, or choose"
            f" from {', '.join(GENERATED)}"
        )
    if (data or template) and name not in BENCHMARKS:
        raise InputError(
            f"task {name!r} takes neither data nor template: those belong to"
            f" {', '.join(BENCHMARKS)}"
        )
    if is_task_file(name):
        return FileTask(name, columns=columns, grader=grader, response_length=response_length)
    if columns or grader or response_length:
        raise InputError(
            f"task {name!r} takes neither columns, grader nor response_length: those belong to a"
            " file of rows, such as mine.jsonl"
        )
    if is_python_task(name):
        return load_task(name)
    if name in BENCHMARKS:
        return BENCHMARKS[name](data, template)
    if name not in TASKS:
        raise unknown_name("task", name, TASKS, " (your own: mine.jsonl or mine.py:MyTask)")
    return _generated(name, draw) if draw else build(TASKS[name], name)


def make_tasks(
    names: Sequence[str],
    *,
    data: Mapping[str, str] | None = None,
    template: str | None = None,
    columns: Mapping[str, str] | None = None,
    grader: str | None = None,
    response_length: int | None = None,
    draw: int = 0,
) -> list[Task]:
    """Several tasks, each once; what is said for all goes to those that it is meant for.

    A name may hold several with commas between them. `data` has files by the tasks' names.
    """
    single = dict.fromkeys(part.strip() for name in names for part in name.split(","))
    single.pop("", None)
    if not single:
        raise InputError(f"no tasks were given: choose from {', '.join(TASKS)}, or a file of yours")
    for name in data or {}:
        if name not in single:
            raise unknown_name("task", name, single, f" in --data {name}=...")
    of_file = {"columns": columns, "grader": grader, "response_length": response_length}
    several = len(single) > 1
    return [
        make_task(
            name,
            (data or {}).get(name),
            None if several and name not in BENCHMARKS else template,
            draw=0 if several and name not in GENERATED else draw,
            **({} if several and not is_task_file(name) else of_file),  # type: ignore[arg-type]
        )
        for name in single
    ]


__all__ = [
    "BENCHMARKS",
    "GENERATED",
    "GRADERS",
    "TASKS",
    "Benchmark",
    "FileTask",
    "Generated",
    "Gsm8k",
    "HumanEval",
    "Mbpp",
    "Problem",
    "Runner",
    "SimpleTask",
    "Task",
    "Verdict",
    "is_own",
    "make_task",
    "make_tasks",
    "prompt_of",
    "right_answer",
]

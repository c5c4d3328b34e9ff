"""Tasks: prompts in, verdicts out. They know nothing of models."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from xpredflow.errors import InputError, unknown_name
from xpredflow.tasks.base import Generated, Problem, Runner, Task, Verdict, prompt_of
from xpredflow.tasks.generated.minicode.task import MiniCode
from xpredflow.tasks.generated.minimath.task import MiniMath
from xpredflow.tasks.published.benchmark import Benchmark
from xpredflow.tasks.published.gsm8k import Gsm8k
from xpredflow.tasks.published.humaneval import HumanEval
from xpredflow.tasks.published.mbpp import Mbpp

# One instance each: a task draws its held-out problems on first use and keeps them.
TASKS: dict[str, Callable[[], Generated]] = {
    "minicode": cache(MiniCode),
    "minimath": cache(MiniMath),
}
# Published problems, from a file or the hub: they are evaluated on, never trained on.
BENCHMARKS: dict[str, type[Benchmark]] = {
    "humaneval": HumanEval,
    "mbpp": Mbpp,
    "gsm8k": Gsm8k,
}


def make_task(name: str, path: str | None = None, template: str | None = None) -> Task:
    """A task by name; the published ones take a file or hub id and a prompt template."""
    if name in BENCHMARKS:
        return BENCHMARKS[name](path, template)
    if name not in TASKS:
        raise unknown_name("task", name, [*TASKS, *BENCHMARKS])
    if path or template:
        raise InputError(
            f"task {name!r} is generated and takes neither data nor template: those belong to"
            f" {', '.join(BENCHMARKS)}"
        )
    return TASKS[name]()


def make_tasks(
    names: Sequence[str],
    *,
    data: Mapping[str, str] | None = None,
    template: str | None = None,
    columns: Mapping[str, str] | None = None,
    grader: str | None = None,
    response_length: int | None = None,
) -> list[Task]:
    """Several tasks, each once; what is said for all goes to those that it is meant for.

    A name may hold several with commas between them. `data` has files by the tasks' names.
    """
    single = dict.fromkeys(part.strip() for name in names for part in name.split(","))
    single.pop("", None)
    if columns or grader or response_length:
        raise InputError("columns, grader and response_length belong to a file of rows")
    return [
        make_task(name, (data or {}).get(name), template if name in BENCHMARKS else None)
        for name in single
    ]


__all__ = [
    "BENCHMARKS",
    "TASKS",
    "Benchmark",
    "Generated",
    "Gsm8k",
    "HumanEval",
    "Mbpp",
    "Problem",
    "Runner",
    "Task",
    "Verdict",
    "make_task",
    "make_tasks",
    "prompt_of",
]

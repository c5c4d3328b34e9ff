"""Options of commands that take tasks."""

from typing import Annotated, Any

import typer

from xpredflow.cli.options import merged

_TASK = "A task: its name (xpredflow tasks lists them), mine.jsonl or mine.py:MyTask; repeatable."


def task_names(incomplete: str) -> list[tuple[str, str]]:
    """Tasks with their summaries, for the shell."""
    from xpredflow.tasks import BENCHMARKS, TASKS

    return [(name, "") for name in (*TASKS, *BENCHMARKS) if name.startswith(incomplete)]


def split_names(incomplete: str) -> list[str]:
    """The usual splits, for the shell."""
    return [name for name in ("validation", "test", "train", "all") if name.startswith(incomplete)]


Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", "-t", metavar="TASK", help=_TASK, autocompletion=task_names),
]
Split = Annotated[
    str,
    typer.Option(
        help="validation while you choose, test once at the end. A file of yours without a column"
        " 'split' is split by its prompts: 80 % train, 10 % validation, 10 % test; all: the whole.",
        autocompletion=split_names,
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="What a field is called in your file, such as prompt=question; repeatable.",
    ),
]
Grader = Annotated[
    str | None,
    typer.Option(
        help="How your file is graded where its rows do not say: exact, number, choice, regex or"
        " python."
    ),
]
ResponseLength = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Tokens that answers to your file may take; default: its column, else 256.",
    ),
]


def of_file(
    column: list[str] | None, grader: str | None, response_length: int | None = None
) -> dict[str, Any]:
    """The options of a file of one's own, as `make_task` takes them."""
    columns = merged({}, column, "--column", "prompt=question") or None
    return {"columns": columns, "grader": grader, "response_length": response_length}

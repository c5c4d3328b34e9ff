"""`xpredflow tasks`: what can be evaluated on, and what its problems look like."""

from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import merged, of_file
from xpredflow.cli.completion import task_names


def tasks(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A task, mine.jsonl or mine.py:MyTask: show some of its problems.",
            autocompletion=task_names,
        ),
    ] = None,
    split: shared.Split = "validation",
    draw: shared.Draw = 0,
    limit: shared.Limit = 3,
    level: Annotated[int | None, typer.Option(help="Only problems of this level.")] = None,
    column: shared.Column = None,
    grader: shared.Grader = None,
    data: shared.Data = None,
    template: shared.Template = None,
) -> None:
    """List the tasks, or show problems of one with a right answer each.

    \b
    Examples:
      xpredflow tasks
      xpredflow tasks minicode --split test --level 3 --limit 5
      xpredflow tasks longmath --split paraphrase
      xpredflow tasks mine.jsonl --grader number --split all
    """
    from xpredflow.registry import TASKS
    from xpredflow.tasks import GRADERS, make_tasks, right_answer

    if name is None:
        for task, entry in TASKS.entries().items():
            typer.echo(f"{task:<12} {entry.summary}")
        typer.echo("\nYour own: mine.jsonl, a row per problem with its grader, or mine.py:MyTask.")
        for grader_name, found in GRADERS.items():
            typer.echo(f"  {grader_name:<10} {found.about}")
        return
    files = merged({}, data, "--data", "mbpp=mbpp.jsonl")
    own = of_file(column, grader)
    (task,) = make_tasks([name], data=files, template=template, draw=draw, **own)
    shown = 0
    for index in range(task.size(split)):
        problem = task.problem(split, index)
        if level not in (None, problem.level):
            continue
        typer.echo(f"[{problem.id}] {problem.prompt}\n{right_answer(task, problem)}\n")
        shown += 1
        if shown == limit:
            break
    if not shown:
        typer.echo(f"no problem of {task.name} in its split {split!r} to show", err=True)

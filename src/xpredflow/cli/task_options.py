"""Options of commands that take tasks, and the bar that moves with an evaluation's passes."""

import sys
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from xpredflow.cli.options import merged

_TASK = "A task: its name (xpredflow tasks lists them), mine.jsonl or mine.py:MyTask; repeatable."


def task_names(incomplete: str) -> list[tuple[str, str]]:
    """Tasks with their summaries, for the shell."""
    from xpredflow.tasks import TASKS

    found = TASKS.entries()
    return [(name, found[name].summary) for name in found if name.startswith(incomplete)]


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


def passes_bar(title: str, shown: bool = True) -> Any:
    """A Watch that counts answers, and on a terminal draws a bar that moves with every pass."""
    from xpredflow.evaluation import Watch

    class PassesBar(Watch):
        """Passes are bounded by the budget; an answer that ends early gives back the rest."""

        left = passes = right = judged = 0

        def __enter__(self) -> "PassesBar":
            self.used: dict[int, int] = {}
            columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
            self.bar = None
            if shown and sys.stderr.isatty():
                from rich.console import Console

                self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
                self.task = self.bar.add_task(title, total=None)
                self.bar.start()
            return self

        def __exit__(self, *_: object) -> None:
            if self.bar is not None:
                self.bar.stop()

        def begin(self, left: int, passes: int) -> None:
            self.left, self.passes, self.used = left, passes, {}
            if self.bar is not None:
                self.bar.reset(self.task, total=max(left * passes, 1), description=title)

        def step(self, step: Any) -> None:
            forward = len(step.rows)
            for row in step.rows:
                self.used[row] = self.used.get(row, 0) + 1
            for done in step.finished:
                forward += max(self.passes - self.used.pop(done.row, self.passes), 0)
            if self.bar is not None:
                self.bar.update(self.task, advance=forward)

        def sample(self, sample: Any) -> None:
            passed = getattr(sample, "passed", getattr(sample, "solved", None))
            self.judged, self.right = self.judged + 1, self.right + bool(passed)
            told = f"{self.judged} answers"
            told += "" if passed is None else f", {self.right} right"
            if self.bar is not None:
                self.bar.update(self.task, description=f"{title}: {told}")

    return PassesBar()

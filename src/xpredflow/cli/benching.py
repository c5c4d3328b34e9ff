"""What `reproduce` and `compare` share once torch is loaded: the plan, the bench, the progress."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from xpredflow.cli.progress import CountBar
from xpredflow.cli.running import load_model
from xpredflow.experiments.bench import Bench, Plan, Watch, unwatched
from xpredflow.sandbox import Sandbox
from xpredflow.tasks import BENCHMARKS, Task, make_task
from xpredflow.types import Model


@dataclass(frozen=True)
class Request:
    """What the user asked for, whatever is made of it."""

    tasks: list[str]
    split: str
    limit: int
    options: dict[str, Any]
    out: Path
    json: bool
    command: str
    source: dict[str, Any]  # dtype and device of every model
    data: dict[str, str]
    template: str | None
    unsafe: bool

    def plan(self) -> Plan:
        """The tasks themselves, and how they are decoded."""
        tasks = tuple(self._task(name) for name in dict.fromkeys(self.tasks))
        return Plan(tasks, self.out, self.split, self.limit, self.options, self.template)

    def _task(self, name: str) -> Task:
        """The task; a template is meant for the published ones among several."""
        template = self.template if name in BENCHMARKS else None
        return make_task(name, self.data.get(name), template)


@contextmanager
def bench(request: Request, plan: Plan, decodes: bool = True) -> Iterator[Bench]:
    """The plan with models, judges if it `decodes`, and progress; Ctrl-C says how to go on."""

    def load(source: str) -> Model:
        return load_model({**request.source, "source": source})

    runs_programs = decodes and any(task.runs_programs for task in plan.tasks)
    with Sandbox(unsafe=request.unsafe) if runs_programs else nullcontext() as box:
        judge = None if box is None else box.runner
        try:
            yield Bench(plan, load, judge, progress, lambda line: typer.echo(line, err=True))
        except KeyboardInterrupt:
            typer.echo("stopped; the same command goes on", err=True)
            raise typer.Exit(130) from None


def progress(title: str, total: int) -> AbstractContextManager[Watch]:
    """A bar on a terminal; elsewhere the line at the end of each job must do."""
    if not sys.stderr.isatty():
        return unwatched(title, total)
    return CountBar(title, total, lambda sample: sample.passed)

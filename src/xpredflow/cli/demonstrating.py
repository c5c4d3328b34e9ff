"""One call of `demo`: a problem per task answered twice, side by side, and a small table."""

from contextlib import nullcontext
from statistics import fmean
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from xpredflow.cli.running import load_model
from xpredflow.engine import loop as engine
from xpredflow.engine.steps import Decoded
from xpredflow.errors import InputError
from xpredflow.sandbox import Sandbox
from xpredflow.tasks import GENERATED, Problem, Runner, Verdict
from xpredflow.tasks.base import Task
from xpredflow.types import Model
from xpredflow.watch.terminal import LiveView, visible

LEARNED = "learned:tiny"  # trained on the model that is shown by default


class Graded(NamedTuple):
    """An answer with its verdict."""

    done: Decoded
    verdict: Verdict


class Stage(NamedTuple):
    """What the demonstration is played on."""

    model: Model
    console: Console
    flow: dict[str, Any]  # its options
    judge: Runner | None


def run(
    source: dict[str, Any], names: list[str], flow: dict[str, Any], number: int, more: int
) -> None:
    """Play the demonstration on standard output, live where it is a terminal."""
    for name in names:
        if name not in GENERATED:
            raise InputError(f"no task {name!r} to demonstrate: choose from {', '.join(GENERATED)}")
    tasks = [GENERATED[name]() for name in names]
    options = flow if source else {"policy": LEARNED, **flow}
    engine.resolve("flow", options)
    first = {task.name: task.problem("validation", number) for task in tasks}
    model = load_model(source)
    console = Console(highlight=False)
    with _sandbox(tasks) as box:
        stage = Stage(model, console, options, None if box is None else box.runner)
        for task in tasks:
            _show(stage, task, first[task.name])
        if more:
            _compare(stage, tasks, range(number + 1, min(number + 1 + more, 500)))


def _sandbox(tasks: list[Any]) -> Any:
    """Where programs run; without one they are shown but not run, and the demo says so."""
    if not any(task.runs_programs for task in tasks):
        return nullcontext()
    try:
        return Sandbox()
    except InputError as error:
        typer.echo(f"note: programs are not run: {error}", err=True)
        return nullcontext()


def _show(stage: Stage, task: Task, problem: Problem) -> None:
    stage.console.print(Text(f"{task.name}: {problem.prompt}", style="bold"))
    flow = _answer(stage, task, problem, "flow", stage.flow)
    mask = _answer(stage, task, problem, "mask", {"budget": flow.done.passes})
    table = Table(expand=False, show_lines=True)
    for title, graded in (("flow", flow), ("mask prediction", mask)):
        table.add_column(f"{title}, {graded.done.passes} passes")
    table.add_row(*(Text(visible(g.done.text)) for g in (flow, mask)))
    table.add_row(*(_verdict(g.verdict) for g in (flow, mask)))
    stage.console.print(table)


def _verdict(verdict: Verdict) -> Text:
    mark, colour = ("right", "green") if verdict.passed else ("wrong", "red")
    return Text(f"{mark}: {visible(verdict.reason)}", style=colour)


def _answer(
    stage: Stage, task: Task, problem: Problem, decoder: str, options: dict[str, Any]
) -> Graded:
    """One row, watched if there is a terminal to watch it on."""
    settings, rules = engine.resolve(decoder, {"gen_length": task.response_length, **options})
    rows = engine.make_rows(stage.model, problem.prompt, settings)
    live = stage.console.is_terminal and not stage.console.is_dumb_terminal
    view = LiveView(stage.model, rows[0], decoder, stage.console) if live else nullcontext()
    finished: list[Decoded] = []
    with view as watcher:
        for step in engine.decode_rows(stage.model, rows, rules, settings):
            if watcher is not None:
                watcher.add(step)
            finished += step.finished
    return Graded(finished[0], _judge(stage, task, problem, finished[0]))


def _judge(stage: Stage, task: Task, problem: Problem, done: Decoded) -> Verdict:
    if task.runs_programs and stage.judge is None:
        return Verdict(False, "not run, there is no sandbox")
    return task.score(problem, done.text, stage.judge)


def _compare(stage: Stage, tasks: list[Any], numbers: range) -> None:
    """Accuracy over further problems: flow, mask prediction step for step, and at full budget."""
    table = Table(
        title=f"{len(numbers)} further problems: right, in passes on average", expand=False
    )
    for column in ("task", "flow", "mask, same passes", "mask, full budget"):
        table.add_column(column)
    for task in tasks:
        problems = {number: task.problem("validation", number) for number in numbers}
        prompts = {number: problem.prompt for number, problem in problems.items()}
        common = {"gen_length": task.response_length}
        flow = engine.generate(stage.model, prompts, decoder="flow", **common, **stage.flow)
        passes = max(round(fmean(done.passes for done in flow)), 1)
        same = engine.generate(stage.model, prompts, decoder="mask", budget=passes, **common)
        full = engine.generate(stage.model, prompts, decoder="mask", **common)
        cells = [_cell(stage, task, problems, answers) for answers in (flow, same, full)]
        table.add_row(task.name, *cells)
    stage.console.print(table)


def _cell(stage: Stage, task: Task, problems: dict[int, Problem], answers: list[Decoded]) -> str:
    right = sum(_judge(stage, task, problems[done.row], done).passed for done in answers)
    return f"{right} in {fmean(done.passes for done in answers):.1f}"

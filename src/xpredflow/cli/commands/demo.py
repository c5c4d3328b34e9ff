"""`xpredflow demo`: what the library is about, in a minute."""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import given, names

if TYPE_CHECKING:
    from rich.console import Console

    from xpredflow.tasks import Problem, Runner, Task, Verdict
    from xpredflow.types import Model
    from xpredflow.watch.trace import Trace

# Validation problems on which the decoders differ: flow and threshold decoding are right, flow in
# half the passes; mask prediction with the flow's passes is wrong. A test holds this.
TELLING = {"minicode": 85, "minimath": 92}
DELAY = 0.15  # seconds per pass on a terminal


def demo(
    model: shared.Model = None,
    task: shared.Tasks = None,
    policy: shared.Policy = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number", "-n", help="Which validation problem; default: a telling one.", min=0
        ),
    ] = None,
    more: Annotated[
        int, typer.Option(metavar="N", help="Further problems for the table at the end.", min=0)
    ] = 16,
    delay: shared.Delay = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Also write what is shown to this .html file, to look at it closely."),
    ] = None,
    dtype: shared.Dtype = None,
    quantize: shared.Quantize = None,
    device: shared.Device = None,
) -> None:
    """Watch three decoders answer the same request side by side, one forward pass at a time.

    Flow, threshold decoding, and mask prediction with as many passes as flow took. Each answer is
    graded: programs by running them against hidden tests in the sandbox, word problems by their
    result. A small table over further problems follows.

    \b
    Examples:
      xpredflow demo
      xpredflow demo --task minimath --number 12 --delay 0.5
      xpredflow demo --policy power:8 --more 0
      xpredflow demo --more 0 --page demo.html
    """
    source = given({"source": model, "dtype": dtype, "quantize": quantize, "device": device})
    flow = given({"policy": policy})
    try:
        _run(source, names(task or TELLING), flow, number, more, delay, page)
    except KeyboardInterrupt:
        typer.echo("stopped; `xpredflow demo` begins anew", err=True)
        raise typer.Exit(130) from None


@dataclass
class Stage:
    """What the demonstration is played on."""

    model: "Model"
    console: "Console"
    flow: dict[str, Any]  # its options
    judge: "Runner | None"
    delay: float

    def options(self, task: "Task", decoder: str, **more: Any) -> dict[str, Any]:
        """How a decoder answers a task's problems here."""
        own = self.flow if decoder == "flow" else {}
        return {"gen_length": task.response_length, **own, **more}

    def grade(self, task: "Task", problem: "Problem", text: str) -> "Verdict":
        """Whether an answer is right; a program needs a sandbox to be run in."""
        from xpredflow.tasks import Verdict

        if task.runs_programs and self.judge is None:
            return Verdict(False, "not run, there is no sandbox")
        return task.score(problem, text, self.judge)


def _run(
    source: dict[str, Any],
    chosen: list[str],
    flow: dict[str, Any],
    number: int | None,
    more: int,
    delay: float | None,
    page: Path | None,
) -> None:
    """Play the demonstration on standard output, pass by pass where it is a terminal."""
    from rich.console import Console

    from xpredflow.cli.progress import load_fitting, terminal
    from xpredflow.engine.request import resolve
    from xpredflow.errors import InputError
    from xpredflow.tasks import make_task
    from xpredflow.watch.viewer import page_path, write_page

    if page is not None:
        page_path(page)
    for name in chosen:
        if name not in TELLING:
            raise InputError(f"no task {name!r} to demonstrate: choose from {', '.join(TELLING)}")
    tasks = [make_task(name) for name in chosen]
    resolve("flow", flow)
    first = {task.name: TELLING[task.name] if number is None else number for task in tasks}
    problems = [task.problem("validation", first[task.name]) for task in tasks]
    model = load_fitting(source)
    screen = terminal(sys.stdout)
    console = screen or Console(highlight=False)
    pause = (DELAY if delay is None else delay) if screen else 0.0
    with _sandbox(tasks) as box:
        stage = Stage(model, console, flow, None if box is None else box.runner, pause)
        shown = [
            trace
            for task, problem in zip(tasks, problems, strict=True)
            for trace in _show(stage, task, problem)
        ]
        if page is not None:
            write_page(page, shown, title="Three decoders on the same request")
            typer.echo(f"written to {page}", err=True)
        if more:
            _compare(stage, tasks, first, more)


def _sandbox(tasks: list[Any]) -> Any:
    """Where programs run; without one they are shown but not run, and the demo says so."""
    from xpredflow.errors import InputError
    from xpredflow.sandbox import Sandbox

    if not any(task.runs_programs for task in tasks):
        return nullcontext()
    try:
        return Sandbox()
    except InputError as error:
        typer.echo(f"note: programs are not run: {error}", err=True)
        return nullcontext()


def _show(stage: Stage, task: "Task", problem: "Problem") -> "list[Trace]":
    """One request, answered three times in lock-step."""
    from rich.text import Text

    from xpredflow.watch.terminal import Column, SideBySide

    stage.console.print(Text(f"{task.name}: {problem.prompt}", style="bold"))
    flow = _answer(stage, task, problem, "flow", "flow")
    passes = len(flow.frames)
    traces = [
        flow,
        _answer(stage, task, problem, "threshold decoding", "threshold"),
        _answer(stage, task, problem, "mask prediction", "mask", budget=passes),
    ]
    colour = not stage.console.no_color
    columns = [Column.of(one, colour=colour) for trace in traces for one in trace.recordings()]
    SideBySide(columns, stage.console, delay=stage.delay).play()
    stage.console.print()
    return traces


def _answer(
    stage: Stage, task: "Task", problem: "Problem", title: str, decoder: str, **more: Any
) -> "Trace":
    """What one decoder does, to be shown together with the others."""
    from xpredflow.watch.trace import record

    options = stage.options(task, decoder, **more)
    trace = record(stage.model, problem.prompt, decoder=decoder, title=title, **options)
    [done] = trace.decoded
    return trace.judged({done.row: stage.grade(task, problem, done.text)})


def _compare(stage: Stage, tasks: "list[Task]", first: dict[str, int], more: int) -> None:
    """Right answers and passes over further problems, in plain words."""
    from rich.table import Table

    from xpredflow.cli.progress import Bar

    table = Table(title=f"The next {more} problems of each task: right answers, passes on average")
    for column in ("", "flow", "threshold decoding", "mask prediction, the flow's passes"):
        table.add_column(column)
    with Bar("further problems", 3 * more * len(tasks), unit="answers") as bar:
        for task in tasks:
            numbers = [(first[task.name] + 1 + i) % task.size("validation") for i in range(more)]
            problems = {number: task.problem("validation", number) for number in numbers}
            flow = _count(stage, task, problems, bar, "flow")
            others = (
                _count(stage, task, problems, bar, "threshold"),
                _count(stage, task, problems, bar, "mask", budget=max(round(flow[1]), 1)),
            )
            cells = (f"{right} right, {used:.1f} passes" for right, used in (flow, *others))
            table.add_row(task.name, *cells)
    stage.console.print(table)


def _count(
    stage: Stage, task: "Task", problems: "dict[int, Problem]", bar: Any, decoder: str, **more: Any
) -> tuple[int, float]:
    """How many of the problems a decoder solves, and its passes on average."""
    from xpredflow.engine import loop

    prompts = {number: problem.prompt for number, problem in problems.items()}
    right, passes = 0, []
    options = stage.options(task, decoder, **more)
    for step in loop.decode_steps(stage.model, prompts, decoder=decoder, **options):
        for done in step.finished:
            solved = stage.grade(task, problems[done.row], done.text).passed
            right, passes = right + solved, [*passes, done.passes]
            bar.advance(1)
    return right, fmean(passes)

"""One call of `generate`: load, decode, watch, print. Every consumer gets the engine's Steps."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from xpredflow.cli.output import Answers
from xpredflow.cli.progress import BarView
from xpredflow.cli.prompts import Given, label
from xpredflow.engine import loop as engine
from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Step
from xpredflow.models import embedded
from xpredflow.types import Model
from xpredflow.watch.terminal import LiveView
from xpredflow.watch.trace import Header, TraceWriter, writable


@dataclass(frozen=True)
class Request:
    """What the user asked for; what was left unsaid is left out."""

    prompts: list[Given]
    source: dict[str, Any]
    decoder: str | None
    options: dict[str, Any]
    trace: Path | None = None
    json: bool = False


def run(request: Request) -> int:
    """Decode the request; the exit code."""
    # everything that can be wrong is looked at before the model is loaded
    decoder = request.decoder or engine.DEFAULT_DECODER
    settings, rules = engine.resolve(decoder, request.options)
    if request.trace is not None:
        writable(request.trace)
    model = load_model(request.source)
    rows = engine.make_rows(model, request.prompts, settings)
    steps = engine.decode_rows(model, rows, rules, settings)
    options = {**request.options, **asdict(settings)}
    header = Header(model.name, decoder, settings.seed, request.prompts, options)
    about = {
        "model": model.name,
        "decoder": decoder,
        "seed": settings.seed,
        "options": {name: options[name] for name in request.options},
    }
    style = "json" if request.json else "terminal" if sys.stdout.isatty() else "plain"
    answers = Answers(request.prompts, about, style, settings.first_row)
    watchers: list[Any] = _views(model, request, rows)
    if request.trace is not None:
        watchers.append(TraceWriter(request.trace, header))
    return _decode(steps, watchers, answers)


def _decode(steps: Iterator[Step], watchers: list[Any], answers: Answers) -> int:
    interrupted = False
    try:
        with ExitStack() as stack:
            watching = [stack.enter_context(watcher) for watcher in watchers]
            for step in steps:
                for watcher in watching:
                    watcher.add(step)
                answers.add(step.finished)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        answers.close()
    if interrupted:
        typer.echo(
            f"interrupted: {answers.printed} of {len(answers.prompts)} prompts finished", err=True
        )
        return 130
    return 1 if answers.failed else 0


def load_model(source: dict[str, Any]) -> Model:
    """The model; a terminal is told that it is being loaded."""
    arguments = {"source": embedded.DEFAULT, **source}
    console = _console(sys.stderr)
    waiting = console.status(f"loading {arguments['source']}") if console else nullcontext()
    with waiting:
        return embedded.load(**arguments)


def _views(model: Model, request: Request, rows: list[Row]) -> list[LiveView | BarView]:
    """What can be shown on the terminal that there is, if there is one."""
    console = None if request.json else _console(sys.stdout)
    if console is not None and len(request.prompts) == 1:
        return [LiveView(model, rows[0], label(request.prompts[0]), console)]
    console = console or _console(sys.stderr)
    return [] if console is None else [BarView(rows, console)]


def _console(stream: Any) -> Console | None:
    """A console on a terminal that can redraw lines; None for a pipe, a file or a dumb one."""
    if not stream.isatty():
        return None
    console = Console(file=stream, highlight=False)
    return None if console.is_dumb_terminal else console

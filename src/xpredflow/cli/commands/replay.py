"""`xpredflow replay`: recorded decodes on a terminal, or as a moving picture."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli.options import RowNumber, Traces
from xpredflow.errors import InputError


def replay(
    traces: Traces,
    row: RowNumber = None,
    speed: Annotated[
        float, typer.Option(metavar="FACTOR", help="Of four passes per second.", min=0.05, max=64)
    ] = 1.0,
    gif: Annotated[Path | None, typer.Option(help="Draw it instead: a .gif or .webp file.")] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Draw it instead: an animated .svg file.")
    ] = None,
) -> None:
    """Play a trace again in the terminal, or draw it as an animation for a README.

    Keys: space plays and pauses, the arrows step, - and + change the speed, q quits. Several
    traces of one prompt stand side by side.

    \b
    Examples:
      xpredflow replay run.jsonl --speed 0.5
      xpredflow replay flow.jsonl mask.jsonl --svg settling.svg
      xpredflow replay run.jsonl --gif settling.gif --speed 2
    """
    from rich.console import Console

    from xpredflow.cli.progress import terminal
    from xpredflow.watch.replay import Keyboard, Replay
    from xpredflow.watch.terminal import Column
    from xpredflow.watch.trace_file import read_chosen
    from xpredflow.watch.viewer import check_columns

    _check(gif, svg)
    chosen = read_chosen(traces, row)
    check_columns(chosen)
    shown = [one for trace in chosen for one in trace.recordings() if one.frames]
    prompts = list(dict.fromkeys(str(one.prompt) for one in shown))
    if len(prompts) > 1:
        numbers = ", ".join(str(one.layout.row) for one in shown[:8])
        raise InputError(f"the trace has {len(prompts)} prompts: choose with --row, of {numbers}")
    if gif is not None or svg is not None:
        from xpredflow.watch.animation import draw

        for path in draw(shown, gif=gif, svg=svg, speed=speed):
            typer.echo(f"written to {path}")
        return
    screen = terminal(sys.stdout)
    console = screen or Console(highlight=False)
    columns = [Column.of(one, colour=not console.no_color) for one in shown]
    if screen is None or not sys.stdin.isatty():
        Replay(columns, console, speed=speed).run()
        return
    with Keyboard() as keyboard:
        Replay(columns, console, speed=speed, keys=keyboard.read).run()


def _check(gif: Path | None, svg: Path | None) -> None:
    for path, endings in ((gif, (".gif", ".webp")), (svg, (".svg",))):
        if path is not None and path.suffix not in endings:
            raise InputError(f"picture {str(path)!r}: its name must end in {' or '.join(endings)}")
        if path is not None and not path.expanduser().parent.is_dir():
            raise InputError(
                f"picture {str(path)!r}: make the directory {str(path.parent)!r} first"
            )

"""`xpredflow generate`: decode prompts, and watch them being decoded.

Numbers are handed on as text: the engine declares their types and names a value that is wrong.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import spec_and_options
from xpredflow.cli.flag_groups import DecodingFlags, expanded
from xpredflow.cli.prompts import Given, gather, label

if TYPE_CHECKING:
    from xpredflow.cli.output import Answers
    from xpredflow.engine.steps import Step


@expanded
def generate(
    decoding: DecodingFlags,
    prompt: Annotated[
        list[str] | None,
        typer.Argument(
            help="Prompts, one or several. Without any, standard input is read as one prompt."
            " [[mask:8]] in a prompt is a gap of 8 tokens to fill in.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            help='File with one prompt per line; a .jsonl file has {"prompt": ...} or'
            ' {"messages": [...]} per line. Blank lines are skipped; - is standard input.',
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Each line of standard input is a prompt of its own.")
    ] = False,
    policy_temperature: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Sample a learned policy's steps at this temperature."),
    ] = None,
    gen_length: Annotated[
        str | None, typer.Option(metavar="N", help="Tokens of the response.")
    ] = None,
    block_length: Annotated[
        str | None,
        typer.Option(metavar="N", help="Decode in blocks of this many tokens, left to right."),
    ] = None,
    system: Annotated[str | None, typer.Option(help="System message of the chat.")] = None,
    chat: Annotated[
        bool | None,
        typer.Option(
            "--chat/--no-chat",
            help="Wrap the prompt in the model's chat template, or send it as it is."
            " Default: where there is a template.",
        ),
    ] = None,
    max_batch: Annotated[
        str | None,
        typer.Option(metavar="N", help="Prompts decoded together in one forward pass."),
    ] = None,
    revision: shared.Revision = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="Record every step in this file (JSON lines; .gz compresses)."),
    ] = None,
    delay: shared.Delay = None,
    json: shared.Json = False,
) -> None:
    """Decode prompts. In a terminal the text is shown as it settles; piped, only the text.

    Several texts are separated by a blank line; --json keeps them apart for certain and says which
    rules and which budget were in force. Ctrl-C prints what is finished (exit code 130). Exit
    codes: 1 when a prompt failed, 2 for bad input.

    \b
    Examples:
      xpredflow generate "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
      xpredflow generate "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters." \\
          --delay 0.3
      xpredflow generate "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters." \\
          --decoder threshold:0.8 --json
      xpredflow generate "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters." \\
          --decoder flow:learned:tiny+tau=0.95 --budget 1/4
      xpredflow generate "25-7=[[mask:2]]"
      xpredflow generate --file prompts.jsonl --json > answers.jsonl
      cat prompts.txt | xpredflow generate --lines --trace run.jsonl.gz
      xpredflow generate "Explain diffusion." --model GSAI-ML/LLaDA-8B-Instruct --dtype bfloat16
    """
    prompts = gather(prompt or [], file, lines)
    named = {
        "policy_temperature": policy_temperature,
        "gen_length": gen_length,
        "block_length": block_length,
        "system": system,
        "chat": chat,
        "max_batch": max_batch,
    }
    source = decoding.source(revision=revision)
    name, options = spec_and_options(decoding.decoder, decoding.options(**named))
    raise typer.Exit(_run(prompts, source, name, options, trace, delay or 0.0, json))


def _run(
    prompts: list[Given],
    source: dict[str, Any],
    decoder: str | None,
    options: dict[str, Any],
    trace: Path | None,
    delay: float,
    as_json: bool,
) -> int:
    """Decode; the exit code. Everything that can be wrong is looked at before the model loads."""
    from dataclasses import asdict

    from xpredflow.cli.output import Answers, budget_of
    from xpredflow.cli.progress import PassesBar, load_fitting, terminal
    from xpredflow.decoders import effective_settings
    from xpredflow.engine import loop
    from xpredflow.engine.request import resolve
    from xpredflow.watch.terminal import LiveView
    from xpredflow.watch.text import TokenText
    from xpredflow.watch.trace import Header
    from xpredflow.watch.trace_file import TraceWriter, writable

    resolve(decoder, options)
    if trace is not None:
        writable(trace)
    model = load_fitting(source)
    # what the checkpoint decides though nobody named it is said here, on standard error
    settings, rules = resolve(decoder, options, model)
    effective = effective_settings(rules)
    named = decoder or str(effective["decoder"])
    rows = loop.make_rows(model, prompts, settings)
    in_force = {**options, **asdict(settings)}
    about = {
        "model": model.name,
        "decoder": named,
        "seed": settings.seed,
        "options": {name: in_force.get(name, value) for name, value in options.items()},
        "rules": effective,
    }
    watchers: list[Any] = []
    screen = None if as_json else terminal(sys.stdout)
    style = "json" if as_json else "terminal" if sys.stdout.isatty() else "plain"
    if screen is not None and len(rows) == 1:
        watchers.append(LiveView(model, rows[0], label(prompts[0]), screen, delay=delay))
        style = "shown"
    else:
        watchers.append(PassesBar.of_rows(rows, console=screen))
    if trace is not None:
        header = Header.of(model, rows, prompts, rules, settings, name=named, options=options)
        watchers.append(TraceWriter(trace, header, TokenText(model.tokenizer)))
    budgets = {row.number: budget_of(row) for row in rows}
    answers = Answers(prompts, about, style, settings.first_row, budgets)
    return _decode(loop.decode_rows(model, rows, rules, settings), watchers, answers)


def _decode(steps: "Iterator[Step]", watchers: list[Any], answers: "Answers") -> int:
    """Every consumer gets the engine's Steps; finished rows are printed whatever happens."""
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
        rest = len(answers.prompts) - answers.printed
        typer.echo(
            f"interrupted: {answers.printed} of {len(answers.prompts)} prompts finished; to go on,"
            f" give the other {rest} again",
            err=True,
        )
        return 130
    return 1 if answers.failed else 0

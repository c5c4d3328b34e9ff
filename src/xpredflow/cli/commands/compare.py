"""`xpredflow compare`: accuracy over forward passes for several decoders."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import command, names
from xpredflow.cli.bench import BenchFlags, stoppable
from xpredflow.cli.completion import decoder_names, model_names, split_names
from xpredflow.cli.flag_groups import expanded
from xpredflow.errors import InputError


@expanded
def compare(
    context: typer.Context,
    flags: BenchFlags,
    decoder: Annotated[
        list[str] | None,
        typer.Option(
            "--decoder",
            "-d",
            metavar="NAME[:VALUE][+OPTION=VALUE]",
            help="A decoder to be run under each of the budgets; repeatable. Default, where no"
            " sweep is given either: flow:confidence, mask and --sweep"
            " threshold:0.5,0.7,0.9,0.95.",
            autocompletion=decoder_names,
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC,VALUE...",
            help="A decoder whose last value is a list: run once per value, at full budget;"
            " repeatable.",
            autocompletion=decoder_names,
        ),
    ] = None,
    budget: shared.Budgets = None,
    model: shared.Model = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="train, validation or test; a file of yours may have any. Default: validation,"
            " with --choose test.",
            autocompletion=split_names,
        ),
    ] = None,
    limit: shared.Limit = 100,
    choose: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="Choose each decoder's settings on this split and show them once on the other;"
            " each must have as many. Sweeps are run under each of the budgets, too.",
        ),
    ] = None,
    choose_limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Problems to choose on; default: limit.")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PASSES",
            help="With --choose: a mean number of passes that settings may take, or a share such as"
            " 1/8; repeatable. Default: 1/16, 1/12, 1/8 and 1/4.",
        ),
    ] = None,
    original: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="With --choose: the weights before alignment. Every decoder but flow may use them,"
            " where it does better there.",
            autocompletion=model_names,
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="With --choose: draws of problems that are shown."),
    ] = 1,
    out: Annotated[
        Path, typer.Option(help="Directory of the comparison; samples are kept and reused there.")
    ] = Path("runs/compare"),
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Pages of the problems on which the decoders disagree, side by side, and an"
            " index.html of them.",
        ),
    ] = None,
) -> None:
    """Compare decoders by their accuracy over forward passes, on minicode and minimath or -t.

    OUT gets compare.md, compare.json and compare.png; a killed run goes on with the same command.
    Budgets are 1/16, 1/8, 1/4, 1/2 and full unless -b is given, once or several times;
    `+budget=...` in a decoder or a sweep replaces them.

    With --choose OUT gets chosen.md, .json and .png instead: each decoder's best setting within
    each number of passes, on problems that nothing was chosen on, beside that of the decoder that
    was named first.

    \b
    Examples:
      xpredflow compare -d flow:confidence -d mask --sweep threshold:0.5,0.7,0.9 --limit 50
      xpredflow compare -d flow:learned:tiny -d mask -b 1/8 -b 1/4 -t minimath
      xpredflow compare --sweep flow:power:8+tau=0.7,0.8,0.9 -t minimath --json
      xpredflow compare -d mask -d mask:entropy -d mask+temperature=0.5 -b 1/4 -b 1/2
      xpredflow compare -d flow:learned:runs/policy/best --sweep eb:0.1,0.5 -m runs/aligned/model
      xpredflow compare -d flow -d mask -b 1/8 --limit 50 --traces runs/differences
      xpredflow compare -d flow -d mask -b 1/4 -t mine.jsonl --column prompt=question
      xpredflow compare --choose validation --original tiny -b 1/8 -b full --draw 1 --draws 3 \\
          --sweep flow+tau=0.8,0.9 --sweep threshold:0.7,0.9 --sweep eb:0.1,0.5
    """
    from xpredflow.cli.progress import BenchBar
    from xpredflow.experiments.compare import compare as run
    from xpredflow.experiments.contenders import BUDGETS

    if choose is not None:
        settings = _Choosing(choose, choose_limit, tuple(at or ()), original, draws)
        specs = (decoder or [], sweep or [], names(budget or BUDGETS))
        _compare_chosen(context, flags, settings, specs, model, split or "test", limit, out)
        return
    for flag, value in (("--choose-limit", choose_limit), ("--at", at), ("--original", original)):
        if value:
            raise InputError(f"{flag} says how settings are chosen: give --choose validation too")
    if draws > 1:
        raise InputError(f"--draws {draws} says what is shown: give --choose validation too")
    watch = BenchBar()
    with stoppable(watch, out):
        found = run(
            model,
            flags.tasks(),
            decoder,
            sweep,
            names(budget or BUDGETS),
            split=split or "validation",
            limit=limit,
            out=out,
            traces=traces,
            watch=watch,
            dtype=flags.dtype,
            quantize=flags.quantize,
            device=flags.device,
            unsafe=flags.unsafe,
            command=command(context),
            **flags.options(),
        )
    typer.echo(json.dumps(found.record()) if flags.json else found.page)
    typer.echo(f"written to {out}", err=True)
    if traces is not None:
        typer.echo(f"where they disagree: {traces / 'index.html'}", err=True)


class _Choosing(NamedTuple):
    """How settings are chosen and on how many draws they are shown."""

    split: str
    limit: int | None
    targets: tuple[str, ...]
    original: str | None
    draws: int


def _compare_chosen(
    context: typer.Context,
    flags: BenchFlags,
    choosing: _Choosing,
    specs: tuple[list[str], list[str], list[str]],
    model: str | None,
    split: str,
    limit: int,
    out: Path,
) -> None:
    """The comparison whose settings are chosen on other problems than they are shown on."""
    from xpredflow.cli.progress import BenchBar
    from xpredflow.experiments.choice import TARGETS
    from xpredflow.experiments.compare_chosen import compare_chosen

    further = [replace(flags, draw=flags.draw + i).tasks() for i in range(1, choosing.draws)]
    watch = BenchBar()
    with stoppable(watch, out):
        found = compare_chosen(
            model,
            flags.tasks(),
            *specs,
            targets=names(choosing.targets or TARGETS),
            original=choosing.original,
            choose_on=choosing.split,
            split=split,
            draws=further,
            choose_limit=choosing.limit,
            limit=limit,
            out=out,
            watch=watch,
            dtype=flags.dtype,
            device=flags.device,
            unsafe=flags.unsafe,
            command=command(context),
            **flags.options(),
        )
    typer.echo(json.dumps(found.record()) if flags.json else found.page)
    typer.echo(f"written to {out}", err=True)

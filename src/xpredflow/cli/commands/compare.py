"""`xpredflow compare`: accuracy over forward passes for several decoders."""

import json
from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.bench import BenchFlags, stoppable
from xpredflow.cli.completion import decoder_names
from xpredflow.cli.flag_groups import expanded
from xpredflow.cli.options import command, names


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
    split: shared.Split = "validation",
    limit: shared.Limit = 100,
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

    \b
    Examples:
      xpredflow compare -d flow:confidence -d mask --sweep threshold:0.5,0.7,0.9 --limit 50
      xpredflow compare -d flow:learned:tiny -d mask -b 1/8 -b 1/4 -t minimath
      xpredflow compare --sweep flow:power:8+tau=0.7,0.8,0.9 -t minimath --json
      xpredflow compare -d mask -d mask:entropy -d mask+temperature=0.5 -b 1/4 -b 1/2
      xpredflow compare -d flow:learned:runs/policy/best --sweep eb:0.1,0.5 -m runs/aligned/model
      xpredflow compare -d flow -d mask -b 1/8 --limit 50 --traces runs/differences
      xpredflow compare -d flow -d mask -b 1/4 -t mine.jsonl --column prompt=question
    """
    from xpredflow.cli.progress import BenchBar
    from xpredflow.experiments.compare import compare as run
    from xpredflow.experiments.contenders import BUDGETS

    watch = BenchBar()
    with stoppable(watch, out):
        found = run(
            model,
            flags.tasks(),
            decoder,
            sweep,
            names(budget or BUDGETS),
            split=split,
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

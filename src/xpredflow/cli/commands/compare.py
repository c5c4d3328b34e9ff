"""`xpredflow compare`: accuracy over forward passes for several decoders."""

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli import task_options as own
from xpredflow.cli.completion import decoder_names
from xpredflow.cli.options import command, merged


def compare(
    context: typer.Context,
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
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            "-b",
            metavar="N|SHARE",
            help="A cap on forward passes: a number, or a share of the response's length: 1/4, 25%"
            " or full; repeatable. Default: 1/16, 1/8, 1/4, 1/2 and full.",
        ),
    ] = None,
    model: shared.Model = None,
    task: own.Tasks = None,
    split: own.Split = "validation",
    limit: shared.Limit = 100,
    option: shared.Option = None,
    out: Annotated[
        Path, typer.Option(help="Directory of the comparison; samples are kept and reused there.")
    ] = Path("runs/compare"),
    json: shared.Json = False,
    column: own.Column = None,
    grader: own.Grader = None,
    response_length: own.ResponseLength = None,
    data: shared.Data = None,
    template: shared.Template = None,
    dtype: shared.Dtype = None,
    device: shared.Device = None,
    unsafe: shared.Unsafe = False,
) -> None:
    """Compare decoders by their accuracy over forward passes, on minicode and minimath or -t.

    OUT gets compare.md, compare.json and compare.png; a killed run goes on with the same command.
    `+budget=...` in a decoder or a sweep replaces the budgets.

    \b
    Examples:
      xpredflow compare -d flow:confidence -d mask --sweep threshold:0.5,0.7,0.9 --limit 50
      xpredflow compare -d flow:learned:tiny -d mask -b 1/8 -b 1/4 -t minimath
      xpredflow compare --sweep flow:power:8+tau=0.7,0.8,0.9 -t minimath --json
      xpredflow compare -d mask -d mask:entropy -d mask+temperature=0.5 -b 1/4 -b 1/2
      xpredflow compare -d flow:learned:runs/policy/best --sweep eb:0.1,0.5 -m runs/aligned/model
      xpredflow compare -d flow -d mask -b 1/4 -t mine.jsonl --column prompt=question
    """
    options = merged({}, option, example="gen_length=64")
    files = merged({}, data, "--data", "mbpp=mbpp.jsonl")
    of_file = own.of_file(column, grader, response_length)

    from xpredflow.cli.bench_bar import BenchBar, stoppable
    from xpredflow.experiments.compare import compare as run
    from xpredflow.experiments.contenders import BUDGETS
    from xpredflow.tasks import make_tasks

    tasks = make_tasks(task or ["minicode", "minimath"], data=files, template=template, **of_file)
    watch = BenchBar()
    with stoppable(watch, out):
        found = run(
            model,
            tasks,
            decoder,
            sweep,
            [cap for text in budget or BUDGETS for cap in text.split(",") if cap.strip()],
            split=split,
            limit=limit,
            out=out,
            watch=watch,
            dtype=dtype,
            device=device,
            unsafe=unsafe,
            command=command(context),
            **options,
        )
    typer.echo(json_text.dumps(found.record()) if json else found.page)
    typer.echo(f"written to {out}", err=True)

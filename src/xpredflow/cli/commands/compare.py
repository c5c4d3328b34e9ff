"""`xpredflow compare`: accuracy over forward passes for several decoders."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.options import command, given, merged


def compare(
    context: typer.Context,
    decoders: Annotated[
        str,
        typer.Option(
            "--decoders",
            "-d",
            metavar="DECODER,...",
            help="Separated by commas: NAME[:VALUE][+OPTION=VALUE], where one VALUE may be a list"
            " in braces.",
        ),
    ] = "flow:confidence,threshold:{0.5,0.7,0.9,0.95},mask",
    budgets: Annotated[
        str,
        typer.Option(
            "--budgets",
            "-b",
            metavar="BUDGET,...",
            help="Caps on forward passes, as numbers or shares (1/4, 25%, full), for decoders"
            " without a list of values.",
        ),
    ] = "1/16,1/8,1/4,1/2,full",
    model: shared.Model = None,
    tasks: shared.Tasks = "minicode,minimath",
    limit: shared.Limit = 100,
    split: shared.Split = "validation",
    option: shared.Option = None,
    out: Annotated[
        Path, typer.Option(help="Directory of the comparison; samples are kept and reused there.")
    ] = Path("runs/compare"),
    json: shared.Json = False,
    dtype: shared.Dtype = None,
    device: shared.Device = None,
    data: shared.Data = None,
    template: shared.Template = None,
    unsafe: shared.Unsafe = False,
) -> None:
    """Compare decoders by their accuracy over forward passes.

    OUT gets compare.md, compare.json and compare.png; a killed run goes on with the same command.
    A decoder with a list of values in braces is run once per value at full budget, any other one
    under each of the budgets.

    \b
    Examples:
      xpredflow compare -d 'flow:confidence,threshold:{0.5,0.7,0.9,0.95},mask' --limit 50
      xpredflow compare -d 'flow:learned:runs/policy/best,factor:{0.5,1,2}' -m runs/aligned/model
      xpredflow compare -d 'mask,mask:entropy,mask+temperature=0.5' --budgets 1/8,1/4,1/2
      xpredflow compare -d 'flow:power:8+tau={0.7,0.8,0.9}' -t minimath --json
    """
    from xpredflow.cli.benching import Request
    from xpredflow.cli.comparison import run

    request = Request(
        tasks=[name.strip() for name in tasks.split(",") if name.strip()],
        split=split,
        limit=limit,
        options=merged({}, option, example="gen_length=64"),
        out=out,
        json=json,
        command=command(context),
        source=given({"dtype": dtype, "device": device}),
        data=merged({}, data, "--data", "mbpp=mbpp.jsonl"),
        template=template,
        unsafe=unsafe,
    )
    run(decoders, budgets, model, request)

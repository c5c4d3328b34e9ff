"""`xpredflow eval`: accuracy and passes of a decoder on graded tasks."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.options import given, merged


def evaluate(
    tasks: shared.Tasks = "minicode,minimath",
    model: shared.Model = None,
    decoder: shared.Decoder = None,
    policy: shared.Policy = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            "-b",
            metavar="N|FRACTION",
            help="Cap on forward passes: a number, or a fraction of the response's length.",
        ),
    ] = None,
    split: shared.Split = "test",
    limit: shared.Limit = 500,
    samples: Annotated[
        int, typer.Option(help="Answers per problem; with several, pass@k is given too.", min=1)
    ] = 1,
    seed: Annotated[str | None, typer.Option(metavar="N", help="Seed of all draws.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", metavar="NAME=VALUE", help="Any option of the engine or the decoder."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for one JSON line per sample; an evaluation goes on there."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per row.")] = False,
    dtype: shared.Dtype = None,
    device: shared.Device = None,
    data: shared.Data = None,
    template: shared.Template = None,
    unsafe: shared.Unsafe = False,
) -> None:
    """Measure accuracy and forward passes on graded tasks.

    Programs that the model writes run in a sandbox. Under torchrun the problems are shared out and
    the table is the same.

    \b
    Examples:
      xpredflow eval --tasks minicode,minimath --decoder flow --policy confidence --budget 1/4
      xpredflow eval -t minimath -d threshold:0.9 --split validation --limit 100 --json
      xpredflow eval -d mask -b 1/2 --out runs/half       # killed? the same command goes on
      xpredflow eval -t minicode -d mask -o temperature=0.8 --samples 10
      xpredflow eval -t humaneval --data humaneval=HumanEval.jsonl.gz -m MODEL -o logits_eos_inf=on
      torchrun --nproc_per_node 2 -m xpredflow eval --tasks minimath
    """
    source = given({"source": model, "dtype": dtype, "device": device})
    options = merged(given({"policy": policy, "budget": budget, "seed": seed}), option)
    from xpredflow.cli.judging import Request, run

    names = [name.strip() for name in tasks.split(",") if name.strip()]
    run(
        Request(
            tasks=names,
            source=source,
            decoder=decoder,
            options=options,
            split=split,
            limit=limit,
            samples=samples,
            out=out,
            json=json,
            unsafe=unsafe,
            data=merged({}, data, "--data", "mbpp=mbpp.jsonl"),
            template=template,
        )
    )

"""`xpredflow eval`: accuracy and steps of a decoder on graded tasks."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli.completion import decoder_names, model_names, policy_names
from xpredflow.cli.named import given, merged


def evaluate(
    tasks: Annotated[
        str,
        typer.Option(
            "--tasks",
            "-t",
            help="Separated by commas: minicode, minimath, humaneval, mbpp, gsm8k.",
        ),
    ] = "minicode,minimath",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="An embedded model, a checkpoint's directory or a hub id.",
            autocompletion=model_names,
        ),
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option("--decoder", "-d", help="A decoder.", autocompletion=decoder_names),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="The flow's step-size policy.", autocompletion=policy_names),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            "-b",
            metavar="N|FRACTION",
            help="Cap on forward passes: a number, or a fraction of the response's length.",
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(help="validation while you choose, test once at the end.")
    ] = "test",
    limit: Annotated[int, typer.Option(help="Problems of each task.", min=1)] = 500,
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
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    device: Annotated[str | None, typer.Option(help="Such as cpu or cuda.")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK=PATH",
            help="File or hub id of a published task; default: its original hub dataset.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(help="Prompt template of published tasks: llada-instruct, llada-base, ..."),
    ] = None,
    unsafe: Annotated[
        bool,
        typer.Option(
            "--unsafe-code-execution",
            help="Run generated programs with your own rights where no sandbox is to be had.",
        ),
    ] = False,
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
    options = merged(given({"policy": policy, "steps": budget, "seed": seed}), option)
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

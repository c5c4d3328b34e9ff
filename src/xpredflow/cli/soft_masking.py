"""`xpredflow train-softmask`: fine-tune a model to read soft masks."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli.completion import model_names
from xpredflow.cli.named import given, merged


def train_softmask(
    out: Annotated[Path, typer.Argument(help="Directory of the run; made if there is none.")],
    answers: Annotated[
        Path, typer.Option(help="Answers to learn from, as self-generate writes them.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="An embedded model, a checkpoint's directory or a hub id.",
            autocompletion=model_names,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that the directory holds.")
    ] = False,
    steps: Annotated[
        str | None, typer.Option("--steps", "-n", metavar="N", help="Updates in all.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Any other setting, such as lr=1e-4, omega_lr=0.02, k=1, batch=16, seed=1.",
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="Such as cpu or cuda.")] = None,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads; default: one per core.", min=1)
    ] = None,
) -> None:
    """Fine-tune a model for soft masking (SM, arXiv 2510.17206): weights and the three ω.

    The run can be stopped at any time and resumed with the same result. At its end OUT/model is
    a checkpoint in the published layout, OUT/model/softmask.json holds what the `soft` decoder
    needs, OUT/log.jsonl the loss and the ω of every step. All parameters are trained, in one
    process.

    \b
    Examples:
      xpredflow self-generate --data minicode,minimath --out own.jsonl
      xpredflow train-softmask runs/soft --answers own.jsonl -n 400 -o lr=1e-4
      xpredflow train-softmask runs/soft --answers own.jsonl -n 400 -o lr=1e-4 --resume
      xpredflow reproduce softmask --softmask runs/soft/model --policy runs/policy/best
    """
    source = given({"source": model, "device": device})
    values = merged(given({"steps": steps}), option, example="lr=1e-4")
    from xpredflow.cli.alignment import Request
    from xpredflow.cli.soft_mask_run import run

    run(Request(out, source, answers, values, resume, threads))

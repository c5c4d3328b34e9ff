"""`xpredflow train-softmask`: fine-tune a model to read soft masks."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.options import given, merged


def train_softmask(
    out: shared.RunDirectory,
    answers: Annotated[
        Path, typer.Option(help="Answers to learn from, as self-generate writes them.")
    ],
    model: shared.Model = None,
    resume: shared.Resume = False,
    updates: shared.Updates = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Any other setting, such as lr=1e-4, omega_lr=0.02, k=1, batch=16, seed=1.",
        ),
    ] = None,
    device: shared.Device = None,
    threads: shared.Threads = None,
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
    values = merged(given({"updates": updates}), option, example="lr=1e-4")
    from xpredflow.cli.alignment import Request
    from xpredflow.cli.soft_mask_run import run

    run(Request(out, source, [answers], values, resume, threads))

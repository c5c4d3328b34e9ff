"""`xpredflow pretrain`: train a small model on the generated tasks."""

from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.options import given, merged


def pretrain(
    out: shared.RunDirectory,
    resume: shared.Resume = False,
    shape: Annotated[
        str | None, typer.Option(help="tiny (LLaDA layout) or tiny-moe (LLaDA2 layout).")
    ] = None,
    updates: Annotated[
        str | None,
        typer.Option(
            "--updates",
            "-n",
            metavar="N",
            help="Updates in all; may be raised on --resume until the rate begins to fall.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Any other setting, such as batch=32, tasks=minimath, later='512:sums'.",
        ),
    ] = None,
    threads: shared.Threads = None,
) -> None:
    """Pretrain a masked diffusion model on minicode and minimath.

    The run can be stopped at any time and resumed with the same result. At its end OUT/model is
    a checkpoint in the published layout, OUT/log.jsonl the losses and OUT/loss.png their plot.

    \b
    Examples:
      xpredflow pretrain runs/tiny --updates 8192
      xpredflow pretrain runs/tiny --updates 8192 --resume
      xpredflow pretrain runs/small -n 500 -o batch=16 -o tasks=minimath
      xpredflow pretrain runs/sums -n 2048 -o later='512:sums;768:minicode,minimath'
      xpredflow pretrain runs/longer -n 2048 -o start=runs/tiny/model -o seed=1
      xpredflow generate "Ann has 13 pens, buys 4. How many pens now?" -m runs/tiny/model
    """
    values = merged(given({"shape": shape, "updates": updates}), option)
    from xpredflow.cli.training import run_pretraining

    run_pretraining(out, values, resume, threads)

"""`xpredflow train-softmask`: fine-tune a model to read soft masks."""

from typing import Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.training_flags import AnswersFlags, settings_flags
from xpredflow.training.softmask.config import SoftMaskConfig


@settings_flags(SoftMaskConfig)
def train_softmask(
    out: shared.RunDirectory,
    begin: AnswersFlags,
    **flags: Any,
) -> None:
    """Fine-tune a model for soft masking (SM, arXiv 2510.17206): weights and the three ω.

    The run can be stopped at any time and resumed with the same result. At its end OUT/model is
    a checkpoint in the published layout, OUT/model/softmask.json holds what the `soft` decoder
    needs, OUT/log.jsonl the loss and the ω of every update, OUT/run.toml all settings, for
    --config. All parameters are trained, in one process.

    \b
    Examples:
      xpredflow self-generate --data minicode,minimath --out own.jsonl
      xpredflow train-softmask runs/soft --answers own.jsonl -n 400 --lr 1e-4
      xpredflow train-softmask runs/soft --answers own.jsonl -n 400 --lr 1e-4 --resume
      xpredflow reproduce softmask --softmask runs/soft/model --policy runs/policy/best
    """
    said = begin.given("train-softmask", SoftMaskConfig, flags, example="lr=1e-4")
    settings = said.config()
    from xpredflow.cli.training import set_threads, show_picture, watched
    from xpredflow.models import embedded
    from xpredflow.training.softmask.run import train_softmask as run
    from xpredflow.training.softmask.trainer import Progress

    set_threads(begin.threads)
    source = said.input("model", begin.model, embedded.PRETRAINED)
    with watched(settings.updates) as view:

        def show(now: Progress) -> None:
            kind = "soft" if now.soft else "plain"
            view.show(now.step, f"loss {now.loss:.3f} ({kind} masks), ω_s {now.omega_s:.3f}")

        done = run(
            source,
            said.inputs["answers"],
            settings,
            out=out,
            resume=begin.resume,
            watch=show,
            device=begin.device,
        )
    for name, before in done.before.items():
        typer.echo(f"loss with {name} masks: {before:.4f} before, {done.after[name]:.4f} after")
    typer.echo(f"checkpoint: {done.checkpoint}")
    show_picture(done.picture)

"""`xpredflow align`: make a model predict its own clean states."""

from typing import Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.training_flags import AnswersFlags, settings_flags
from xpredflow.training.align.config import AlignConfig


@settings_flags(AlignConfig)
def align(
    out: shared.RunDirectory,
    begin: AnswersFlags,
    **flags: Any,
) -> None:
    """Align a model for x-prediction flow on answers that it generated itself.

    The run can be stopped at any time and resumed with the same result. At its end OUT/model is
    a checkpoint in the published layout, OUT/log.jsonl holds the losses of every update and
    OUT/losses.png their plot; how well clean tokens are kept, before and after, is printed and
    stands in OUT/model/alignment.json. OUT/run.toml has all settings, for --config. Under torchrun
    the weights are sharded over the processes.

    \b
    Examples:
      xpredflow self-generate --data minicode,minimath -m runs/tiny/model --out own.jsonl
      xpredflow align runs/aligned -m runs/tiny/model --answers own.jsonl --lr 5e-4
      xpredflow align runs/aligned -m runs/tiny/model --answers own.jsonl --lr 5e-4 --resume
      xpredflow align runs/again --config runs/aligned/run.toml --seed 1
      xpredflow align runs/lora -m DIR --answers own.jsonl -n 400 --lora-rank 8 --lr 1e-4
      torchrun --nproc_per_node 8 -m xpredflow align OUT -m GSAI-ML/LLaDA-8B-Instruct \\
          --answers own.jsonl --device cuda

    \b
    Then once more, on the states that the flow visits:
      xpredflow self-generate --data minicode,minimath -m runs/aligned/model --keep solved \\
          -d flow -o policy=power:8 -o budget=1/4 --retry --out flow.jsonl
      xpredflow align runs/on_policy -m runs/aligned/model --answers flow.jsonl -n 400 \\
          --lr 2e-4 --clean-entropy 0.1 --on-policy 0.4
    """
    said = begin.given("align", AlignConfig, flags, example="lr=5e-4")
    settings = said.config()
    from xpredflow.cli.training import set_threads, show_picture, shown, watched
    from xpredflow.models import embedded
    from xpredflow.training.align.progress import Progress
    from xpredflow.training.align.run import align as run

    set_threads(begin.threads)
    source = said.input("model", begin.model, embedded.PRETRAINED)
    with watched(settings.updates) as view:

        def show(now: Progress) -> None:
            line = f"mse masked {shown(now.mse_masked)}, unmasked {shown(now.mse_unmasked)}"
            if now.mse_on_policy is not None:
                line += f", on-policy {shown(now.mse_on_policy)}"
            line += f", ce masked {shown(now.ce_masked)}"
            line += f" (reference {shown(now.reference_ce_masked)})"
            view.show(now.step, line, now.warning)

        done = run(
            source,
            said.inputs["answers"],
            settings,
            out=out,
            resume=begin.resume,
            watch=show,
            device=begin.device,
            say=view.note,
        )
    if done.after is None:  # another process writes and speaks
        return
    typer.echo(f"before: {_described(done.before)}")
    typer.echo(f"after:  {_described(done.after)}")
    typer.echo(f"checkpoint: {done.checkpoint}")
    show_picture(done.picture)


def _described(found: Any) -> str:
    """A Consistency in a line."""
    line = f"{found.agreement:.2%} of clean tokens kept, readout {found.distance:.2%} away"
    if found.text_agreement is None or found.text_distance is None:
        return line
    return f"{line}; in the text {found.text_agreement:.2%} and {found.text_distance:.2%}"

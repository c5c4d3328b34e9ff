"""`xpredflow pretrain`: train a small model from nothing, or a checkpoint further."""

from typing import Annotated, Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import names
from xpredflow.cli.training_flags import Given, settings_flags
from xpredflow.training.pretrain.config import PretrainConfig

TASKS, SHAPE = ("minicode", "minimath"), "tiny"


@settings_flags(PretrainConfig)
def pretrain(
    out: shared.RunDirectory,
    task: shared.Tasks = None,
    shape: Annotated[
        str | None,
        typer.Option(
            help="Layout of a fresh model: tiny (LLaDA), tiny-moe (LLaDA2) or a config.json."
            f"  [default: {SHAPE}]"
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A checkpoint to train further instead.")
    ] = None,
    config: shared.ConfigFile = None,
    resume: shared.Resume = False,
    option: shared.SettingPairs = None,
    threads: shared.Threads = None,
    **flags: Any,
) -> None:
    """Pretrain a small masked diffusion model on tasks that have right answers.

    The tasks, by default minicode and minimath, take turns; one may be named twice.
    The run can be stopped at any time and resumed with the same result. At its end OUT/model is
    a checkpoint in the published layout, OUT/log.jsonl the losses, OUT/loss.png their plot and
    OUT/run.toml all settings, for --config. How the embedded models were made, with exercises and
    stages, is in recipes/. Under torchrun the processes share out the examples of each update.

    \b
    Examples:
      xpredflow pretrain runs/tiny --updates 8192
      xpredflow pretrain runs/tiny --updates 8192 --resume
      xpredflow pretrain runs/small -n 500 --batch 16 --task minimath
      xpredflow pretrain runs/mine -n 2048 --shape my/config.json --vocabulary 1024
      xpredflow pretrain runs/longer -n 2048 --start runs/tiny/model --seed 1
      torchrun --nproc_per_node 2 -m xpredflow pretrain runs/tiny --updates 8192
      xpredflow generate "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters." \\
          -m runs/tiny/model
    """
    said = Given("pretrain", PretrainConfig, flags, option, config, example="batch=32")
    settings = said.config()
    tasks = said.input("tasks", names(task or []), TASKS)
    # what is said on the command line, fresh or not, replaces what the file says of it
    begin = {"start": start, "shape": shape} if start or shape else said.inputs
    from xpredflow.cli.training import set_threads, show_picture, watched
    from xpredflow.processes import join_processes
    from xpredflow.training.pretrain.run import pretrain as run
    from xpredflow.training.pretrain.trainer import Progress

    set_threads(threads)
    start = begin.get("start")
    with watched(settings.updates) as view:

        def show(now: Progress) -> None:
            line = f"loss {now.loss:.3f}, right {now.accuracy:.1%}"
            solved = now.solved or {}
            line += "".join(f", {task} {share:.0%}" for task, share in solved.items())
            view.show(now.step, line if view.progress else f"{line}, {now.hours_left:.1f} h left")

        done = run(
            settings,
            out,
            tasks=names([tasks] if isinstance(tasks, str) else tasks),
            model_config=begin.get("shape") or (None if start else SHAPE),
            start=start,
            resume=resume,
            watch=show,
        )
    if join_processes().rank > 0:
        return
    if done.unprobed:
        typer.echo(f"note: programs were not probed: {done.unprobed}", err=True)
    typer.echo(f"checkpoint: {done.checkpoint}")
    show_picture(done.picture)

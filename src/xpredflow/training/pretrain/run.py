"""A whole pretraining in one call: from tasks with right answers to a checkpoint."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError
from xpredflow.processes import from_first, join_processes
from xpredflow.sandbox import Sandbox
from xpredflow.training.common.plots import plot_losses
from xpredflow.training.common.runs import follow
from xpredflow.training.pretrain.batches import Source, make_source
from xpredflow.training.pretrain.config import PretrainConfig
from xpredflow.training.pretrain.initialise import Initialise
from xpredflow.training.pretrain.trainer import Pretraining, Progress, Stage


@dataclass(frozen=True)
class Pretrained:
    """What a pretraining left behind; `picture` is None where matplotlib is missing.

    `unprobed` says why programs were not judged on the way, where they were not.
    """

    checkpoint: Path
    log: Path
    picture: Path | None
    unprobed: str | None = None


def pretrain(
    config: PretrainConfig,
    out: str | Path,
    *,
    tasks: Sequence[str | Source],
    model_config: str | Path | Mapping[str, Any] | None = None,
    start: str | Path | None = None,
    schedule: Sequence[Stage] = (),
    initialise: Initialise | None = None,
    resume: bool = False,
    watch: Callable[[Progress], None] | None = None,
) -> Pretrained:
    """Pretrain a masked diffusion model on tasks that have right answers (Eq. 1).

    A fresh model has the layout of `model_config`: `tiny`, `tiny-moe`, a config.json or what would
    stand in one; `initialise(model, seed)` may overwrite its random weights. Or it is the
    checkpoint `start`, trained further. Examples come from `tasks` in turn, and from the sources of
    a Stage of `schedule` from its update on. `watch` is called every few updates.

        config = PretrainConfig(updates=2048, batch=32)
        done = pretrain(config, "runs/small", tasks=["minimath"], model_config="tiny")
        model = load(done.checkpoint)
    """
    out, share = Path(out), join_processes()
    sources = tuple(make_source(task) for task in tasks)
    box, unprobed = _sandbox(sources)
    with box as sandbox:
        training = Pretraining(
            config,
            out,
            sources,
            model_config=model_config,
            start=None if start is None else str(start),
            schedule=tuple(schedule),
            initialise=initialise,
            resume=resume,
            judge=None if sandbox is None else sandbox.runner,
            share=share,
        )
        follow(training, watch, training.run.stoppable(lambda: training.step))
    if share.rank == 0:
        training.finish(out / "model")
    log, picture = training.run.log_path, out / "loss.png"
    drawn = share.rank == 0 and plot_losses(log, picture)
    from_first(share, None)  # the checkpoint is there when any of them returns
    return Pretrained(out / "model", log, picture if drawn else None, unprobed)


def _sandbox(
    sources: tuple[Source, ...],
) -> tuple[AbstractContextManager[Sandbox | None], str | None]:
    """Where programs are probed; a machine without a sandbox probes the other tasks only."""
    if not any(getattr(source, "runs_programs", False) for source in sources):
        return nullcontext(), None
    try:
        return Sandbox(), None
    except InputError as error:
        return nullcontext(), str(error)

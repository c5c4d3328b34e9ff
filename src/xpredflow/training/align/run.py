"""A whole alignment in one call: from a model and its own answers to an aligned checkpoint."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from xpredflow.models import MaskedDiffusionModel
from xpredflow.processes import join_processes, leave_processes
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.consistency import Consistency
from xpredflow.training.align.memory import announced
from xpredflow.training.align.progress import Progress
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.plots import plot_alignment
from xpredflow.training.common.runs import follow
from xpredflow.training.common.start import Answers, start_from


@dataclass(frozen=True)
class Aligned:
    """What an alignment left behind, and how well clean tokens are kept before and after.

    `after` is None in those of several processes that wrote nothing; `picture` is None where
    matplotlib is missing.
    """

    checkpoint: Path
    before: Consistency
    after: Consistency | None
    log: Path
    picture: Path | None


def align(
    model: MaskedDiffusionModel | str | Path,
    answers: Answers,
    config: AlignConfig | None = None,
    *,
    out: str | Path,
    resume: bool = False,
    watch: Callable[[Progress], None] | None = None,
    device: str | None = None,
    say: Callable[[str], None] | None = None,
) -> Aligned:
    """Align a model for x-prediction flow on answers that it generated itself.

    `model` is a loaded one (it is copied, not changed), a name or a path; `answers` are files that
    self-generate wrote, or a list of Answer. `watch` is called after every update, and `say` before
    the first one with the memory that is expected on an accelerator. A run that was stopped goes on
    with `resume=True` and ends with the same weights.

        from xpredflow import AlignConfig, align, load
        done = align("tiny", "own.jsonl", AlignConfig(updates=100, lr=5e-4), out="runs/aligned")
        model = load(done.checkpoint)
    """
    out, config, share = Path(out), config or AlignConfig(), join_processes()
    training = Alignment(start_from(model, answers, device), config, out, resume, share)
    expected = training.expected()
    if say is not None and expected is not None and share.rank == 0:
        line = announced(expected, training.device, share.world)
        if line is not None:
            say(line)
    follow(training, watch, training.run.stoppable(lambda: training.step))
    after = training.finish(out / "model")
    picture = out / "losses.png"
    drawn = share.rank == 0 and plot_alignment(training.run.log_path, picture)
    leave_processes()
    return Aligned(
        out / "model", training.before, after, training.run.log_path, picture if drawn else None
    )

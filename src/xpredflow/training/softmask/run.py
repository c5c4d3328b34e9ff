"""A whole fine-tuning for soft masks in one call."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from xpredflow.errors import InputError
from xpredflow.models import MaskedDiffusionModel
from xpredflow.processes import join_processes
from xpredflow.training.common.plots import plot_losses
from xpredflow.training.common.runs import follow
from xpredflow.training.common.start import Answers, start_from
from xpredflow.training.softmask.config import SoftMaskConfig
from xpredflow.training.softmask.trainer import Progress, SoftMaskTraining


@dataclass(frozen=True)
class SoftMasked:
    """What was left behind; losses on held-out answers, read with plain and with soft masks.

    `picture` is None where matplotlib is missing.
    """

    checkpoint: Path
    before: dict[str, float]
    after: dict[str, float]
    log: Path
    picture: Path | None


def train_softmask(
    model: MaskedDiffusionModel | str | Path,
    answers: Answers,
    config: SoftMaskConfig | None = None,
    *,
    out: str | Path,
    resume: bool = False,
    watch: Callable[[Progress], None] | None = None,
    device: str | None = None,
) -> SoftMasked:
    """Fine-tune a model to read soft masks; its arguments are those of `align`.

    done = train_softmask("tiny", "own.jsonl", SoftMaskConfig(lr=1e-4), out="runs/soft")
    print(done.before, done.after)
    """
    if join_processes().world > 1:
        raise InputError("train-softmask runs in one process: start it without torchrun")
    out = Path(out)
    start = start_from(model, answers, device)
    training = SoftMaskTraining(start, config or SoftMaskConfig(), out, resume)
    follow(training, watch, training.run.stoppable(lambda: training.step))
    after = training.finish(out / "model")
    log, picture = training.run.log_path, out / "loss.png"
    drawn = plot_losses(log, picture)
    return SoftMasked(out / "model", training.before, after, log, picture if drawn else None)

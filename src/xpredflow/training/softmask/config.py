"""The settings of fine-tuning for soft masks: each is a flag of `train-softmask`."""

from xpredflow.settings import grouped, settings
from xpredflow.training.common.optimiser import (
    gradient_clip,
    optimiser,
    rate_share,
    weight_decay,
)

_soft = grouped("Soft masks")
_run = grouped("Run")


@settings
class SoftMaskConfig:
    """Everything that decides the result, beside the model and the answers."""

    updates: int = _run(400, "updates in all", ge=1)
    batch: int = _run(32, "answers per update", ge=1)
    seed: int = _run(0, "seed of masks and batches", ge=0)
    holdout: int = _run(64, "answers that are measured on and not trained on", ge=1)
    save_every: int = _run(50, "updates between two saved states", ge=1)
    k: int = _soft(
        3, "predicted tokens in the blend: 1 for code, 3 for language in the paper", ge=1
    )
    soft_share: float = _soft(
        0.5, "updates that read soft masks; the others read plain ones", ge=0, le=1
    )
    lr: float = optimiser(1e-5, "learning rate of the weights", gt=0)
    omega_lr: float = optimiser(1e-2, "learning rate of the three ω", gt=0)
    warmup: int = optimiser(10, "updates until the full rates, which then fall to zero", ge=1)
    weight_decay: float = weight_decay(0.0, "AdamW")
    clip: float = gradient_clip()

    def scale(self, step: int) -> float:
        """Of both rates: warm up, then fall linearly to zero."""
        falling = self.updates - self.warmup
        return rate_share(step, self.updates, warmup=self.warmup, falling=falling)

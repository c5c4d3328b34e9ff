"""The settings of fine-tuning for soft masks: each is a flag of `train-softmask`."""

from pydantic.config import JsonDict

from xpredflow.settings import Field, settings
from xpredflow.training.common.optimiser import (
    OPTIMISER,
    gradient_clip,
    rate_share,
    weight_decay,
)

_SOFT: JsonDict = {"group": "Soft masks"}
_RUN: JsonDict = {"group": "Run"}


@settings
class SoftMaskConfig:
    """Everything that decides the result, beside the model and the answers."""

    updates: int = Field(default=400, ge=1, description="updates in all", json_schema_extra=_RUN)
    batch: int = Field(default=32, ge=1, description="answers per update", json_schema_extra=_RUN)
    seed: int = Field(
        default=0, ge=0, description="seed of masks and batches", json_schema_extra=_RUN
    )
    holdout: int = Field(
        default=64,
        ge=1,
        description="answers that are measured on and not trained on",
        json_schema_extra=_RUN,
    )
    save_every: int = Field(
        default=50, ge=1, description="updates between two saved states", json_schema_extra=_RUN
    )
    k: int = Field(
        default=3,
        ge=1,
        description="predicted tokens in the blend: 1 for code, 3 for language in the paper",
        json_schema_extra=_SOFT,
    )
    soft_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="updates that read soft masks; the others read plain ones",
        json_schema_extra=_SOFT,
    )
    lr: float = Field(
        default=1e-5, gt=0, description="learning rate of the weights", json_schema_extra=OPTIMISER
    )
    omega_lr: float = Field(
        default=1e-2, gt=0, description="learning rate of the three ω", json_schema_extra=OPTIMISER
    )
    warmup: int = Field(
        default=10,
        ge=1,
        description="updates until the full rates, which then fall to zero",
        json_schema_extra=OPTIMISER,
    )
    weight_decay: float = weight_decay(0.0, "AdamW")
    clip: float = gradient_clip()

    def scale(self, step: int) -> float:
        """Of both rates: warm up, then fall linearly to zero."""
        falling = self.updates - self.warmup
        return rate_share(step, self.updates, warmup=self.warmup, falling=falling)

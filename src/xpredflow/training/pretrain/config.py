"""The settings of a pretraining run: each is a flag of `pretrain` and a line of its run.toml."""

from pydantic.config import JsonDict

from xpredflow.settings import Field, settings
from xpredflow.training.common.optimiser import (
    OPTIMISER,
    gradient_clip,
    rate_share,
    weight_decay,
)

_MASKING: JsonDict = {"group": "Masking and batches"}
_TOKENIZER: JsonDict = {"group": "Tokenizer"}
_RUN: JsonDict = {"group": "Run"}


@settings
class PretrainConfig:
    """Everything that decides the result, beside the tasks and what the model begins with."""

    updates: int = Field(
        default=20_000,
        ge=1,
        description="updates in all; may be raised on --resume until the rate begins to fall",
        json_schema_extra=_RUN,
    )
    seed: int = Field(
        default=0, ge=0, description="seed of examples, masks and weights", json_schema_extra=_RUN
    )
    probe_every: int = Field(
        default=2048,
        ge=0,
        description="updates between two probes of the accuracy, in whole 64s; 0: never",
        json_schema_extra=_RUN,
    )
    batch: int = Field(
        default=64, ge=1, description="examples per update", json_schema_extra=_MASKING
    )
    cut_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="rows masked from a random place on instead of here and there",
        json_schema_extra=_MASKING,
    )
    tail_share: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="rows of which only the tail is shown, from whole_from on",
        json_schema_extra=_MASKING,
    )
    full_share: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="batches filled with EOS up to the full response length",
        json_schema_extra=_MASKING,
    )
    whole_from: int = Field(
        default=3584,
        ge=0,
        description="update from which on all batches are",
        json_schema_extra=_MASKING,
    )
    lr: float = Field(
        default=4e-3,
        gt=0,
        description="learning rate of Muon and AdamW",
        json_schema_extra=OPTIMISER,
    )
    warmup: int = Field(
        default=200, ge=1, description="updates until the full rate", json_schema_extra=OPTIMISER
    )
    decay_share: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="last part of the run, in which the rate falls to zero",
        json_schema_extra=OPTIMISER,
    )
    weight_decay: float = weight_decay(0.05, "both")
    clip: float = gradient_clip()
    ema: float = Field(
        default=0.999,
        ge=0,
        lt=1,
        description="decay of the average of the weights, which is what is written",
        json_schema_extra=OPTIMISER,
    )
    vocabulary: int = Field(
        default=704, ge=1, description="tokens of a fresh model", json_schema_extra=_TOKENIZER
    )
    tokenizer_examples: int = Field(
        default=20_000,
        ge=1,
        description="examples that the vocabulary is learned from",
        json_schema_extra=_TOKENIZER,
    )

    def rate(self, step: int) -> float:
        """Warm up, stay, then fall linearly to zero: most is learned while the rate falls."""
        falling = self.decay_share * self.updates
        return self.lr * rate_share(step, self.updates, warmup=self.warmup, falling=falling)

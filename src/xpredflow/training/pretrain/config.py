"""The settings of a pretraining run: each is a flag of `pretrain` and a line of its run.toml."""

from xpredflow.settings import Field, settings

_MASKING = {"group": "Masking and batches"}
_OPTIMISER = {"group": "Optimiser"}
_TOKENIZER = {"group": "Tokenizer"}
_RUN = {"group": "Run"}


@settings
class PretrainConfig:
    """Everything that decides the result, beside the tasks and what the model begins with."""

    updates: int = Field(
        20_000,
        ge=1,
        description="updates in all; may be raised on --resume until the rate begins to fall",
        json_schema_extra=_RUN,
    )
    seed: int = Field(
        0, ge=0, description="seed of examples, masks and weights", json_schema_extra=_RUN
    )
    probe_every: int = Field(
        2048,
        ge=0,
        description="updates between two probes of the accuracy, in whole 64s; 0: never",
        json_schema_extra=_RUN,
    )
    batch: int = Field(64, ge=1, description="examples per update", json_schema_extra=_MASKING)
    cut_share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="rows masked from a random place on instead of here and there",
        json_schema_extra=_MASKING,
    )
    tail_share: float = Field(
        0.25,
        ge=0,
        le=1,
        description="rows of which only the tail is shown, from whole_from on",
        json_schema_extra=_MASKING,
    )
    full_share: float = Field(
        0.25,
        ge=0,
        le=1,
        description="batches filled with EOS up to the full response length",
        json_schema_extra=_MASKING,
    )
    whole_from: int = Field(
        3584, ge=0, description="update from which on all batches are", json_schema_extra=_MASKING
    )
    lr: float = Field(
        4e-3, gt=0, description="learning rate of Muon and AdamW", json_schema_extra=_OPTIMISER
    )
    warmup: int = Field(
        200, ge=1, description="updates until the full rate", json_schema_extra=_OPTIMISER
    )
    decay_share: float = Field(
        0.4,
        ge=0,
        le=1,
        description="last part of the run, in which the rate falls to zero",
        json_schema_extra=_OPTIMISER,
    )
    weight_decay: float = Field(
        0.05, ge=0, description="weight decay of both", json_schema_extra=_OPTIMISER
    )
    clip: float = Field(
        1.0,
        gt=0,
        description="longer gradients are shortened to this",
        json_schema_extra=_OPTIMISER,
    )
    ema: float = Field(
        0.999,
        ge=0,
        lt=1,
        description="decay of the average of the weights, which is what is written",
        json_schema_extra=_OPTIMISER,
    )
    vocabulary: int = Field(
        704, ge=1, description="tokens of a fresh model", json_schema_extra=_TOKENIZER
    )
    tokenizer_examples: int = Field(
        20_000,
        ge=1,
        description="examples that the vocabulary is learned from",
        json_schema_extra=_TOKENIZER,
    )

    def rate(self, step: int) -> float:
        """Warm up, stay, then fall linearly to zero: most is learned while the rate falls."""
        left = (self.updates - step) / max(self.decay_share * self.updates, 1)
        return self.lr * max(0.0, min(1.0, (step + 1) / self.warmup, left))

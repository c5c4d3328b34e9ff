"""The settings of an alignment run: each is a flag of `align` and a line of its run.toml."""

from typing import Literal

from pydantic.config import JsonDict

from xpredflow.errors import InputError
from xpredflow.processes import Share
from xpredflow.settings import Field, settings
from xpredflow.training.common.optimiser import (
    OPTIMISER,
    gradient_clip,
    rate_share,
    weight_decay,
)

CHUNK = 256  # at LLaDA's 126,464 tokens: 0.26 GB
_BATCHES: JsonDict = {"group": "Batches"}
_ADAPTERS: JsonDict = {"group": "Adapters"}
_OBJECTIVE: JsonDict = {"group": "Objective (beyond the paper's)"}
_MEMORY: JsonDict = {"group": "Memory and precision"}
_RUN: JsonDict = {"group": "Run"}


@settings
class AlignConfig:
    """Everything that decides the result of an alignment run, beside the model and the answers."""

    updates: int = Field(default=100, ge=1, description="updates in all", json_schema_extra=_RUN)
    seed: int = Field(
        default=0, ge=0, description="seed of masks and batches", json_schema_extra=_RUN
    )
    save_every: int = Field(
        default=20, ge=1, description="updates between two saved states", json_schema_extra=_RUN
    )
    holdout: int = Field(
        default=64,
        ge=1,
        description="answers that consistency is measured on and that are not trained on",
        json_schema_extra=_RUN,
    )
    reference_every: int = Field(
        default=1,
        ge=0,
        description="updates between two looks at the reference's cross-entropy; 0: never",
        json_schema_extra=_RUN,
    )
    batch: int = Field(
        default=32,
        ge=1,
        description="answers per update, over all processes",
        json_schema_extra=_BATCHES,
    )
    accumulate: int = Field(
        default=1,
        ge=1,
        description="parts in which each process goes through its share of a batch",
        json_schema_extra=_BATCHES,
    )
    lr: float = Field(
        default=2e-5,
        gt=0,
        description="learning rate of AdamW; small models want more",
        json_schema_extra=OPTIMISER,
    )
    warmup: int = Field(
        default=10,
        ge=1,
        description="updates until the full rate, which then falls to zero",
        json_schema_extra=OPTIMISER,
    )
    weight_decay: float = weight_decay(0.0, "AdamW")
    clip: float = gradient_clip()
    lora_rank: int = Field(
        default=0,
        ge=0,
        description="0: all parameters but W_e are trained",
        json_schema_extra=_ADAPTERS,
    )
    lora_targets: str = Field(
        default="",
        description="such as q_proj,v_proj; without: every linear matrix of the layers",
        json_schema_extra=_ADAPTERS,
    )
    clean_entropy: float = Field(
        default=0.0,
        ge=0,
        description="weight of the cross-entropy at unmasked positions",
        json_schema_extra=_OBJECTIVE,
    )
    keep_reference: float = Field(
        default=0.0,
        ge=0,
        description="weight of KL(reference ‖ model) at masks",
        json_schema_extra=_OBJECTIVE,
    )
    on_policy: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="share of rows that show states which the flow visits",
        json_schema_extra=_OBJECTIVE,
    )
    on_policy_states: Literal["flow", "predictions"] = Field(
        default="flow",
        description="of those rows; predictions: own ones for 3/4 of the tokens, as DMax trains",
        json_schema_extra=_OBJECTIVE,
    )
    checkpointing: bool = Field(
        default=False,
        description="recompute activations in the backward pass",
        json_schema_extra=_MEMORY,
    )
    chunk: int = Field(
        default=CHUNK,
        ge=1,
        description="positions that have logits at the same time",
        json_schema_extra=_MEMORY,
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto",
        description="of matrix products; auto: float32 on a CPU, else bfloat16",
        json_schema_extra=_MEMORY,
    )
    dtype: Literal["float32", "bfloat16", "float16"] | None = Field(
        default=None,
        description="of the written weights; without: as the model was stored",
        json_schema_extra=_MEMORY,
    )

    def __post_init__(self) -> None:
        if self.keep_reference and self.reference_every != 1:
            raise InputError(
                f"reference_every is {self.reference_every}, but keep_reference needs the reference"
                " at every update: leave it at 1"
            )
        if self.lora_targets and not self.lora_rank:
            raise InputError(
                f"lora_targets is {self.lora_targets!r} but lora_rank is 0, which trains all"
                " parameters: set lora_rank too, e.g. lora_rank=8"
            )

    def rate(self, step: int) -> float:
        """Warm up, then fall linearly to zero."""
        falling = self.updates - self.warmup
        return self.lr * rate_share(step, self.updates, warmup=self.warmup, falling=falling)

    def rows_at_once(self, share: Share) -> int:
        """Answers in one forward pass of one process."""
        parts = self.accumulate * share.world
        if self.batch % parts:
            raise InputError(
                f"batch is {self.batch}, which {share.world} process(es) with accumulate ="
                f" {self.accumulate} cannot share evenly: give a multiple of {parts}"
            )
        return self.batch // parts

"""The settings of an alignment run: each is a flag of `align` and a line of its run.toml."""

from typing import Literal

from xpredflow.errors import InputError
from xpredflow.processes import Share
from xpredflow.settings import grouped, settings
from xpredflow.training.common.optimiser import (
    gradient_clip,
    optimiser,
    rate_share,
    weight_decay,
)

CHUNK = 256  # at LLaDA's 126,464 tokens: 0.26 GB
LARGE = 1_000_000_000  # parameters from which on memory decides the defaults
POSITIONS = 4096  # that a large model reads at once
_batches = grouped("Batches")
_adapters = grouped("Adapters")
_objective = grouped("Objective (beyond the paper's)")
_memory = grouped("Memory and precision")
_run = grouped("Run")


@settings
class AlignConfig:
    """Everything that decides the result of an alignment run, beside the model and the answers."""

    updates: int = _run(100, "updates in all", ge=1)
    seed: int = _run(0, "seed of masks and batches", ge=0)
    save_every: int = _run(20, "updates between two saved states", ge=1)
    holdout: int = _run(
        64, "answers that consistency is measured on and that are not trained on", ge=1
    )
    reference_every: int = _run(
        1, "updates between two looks at the reference's cross-entropy; 0: never", ge=0
    )
    batch: int = _batches(32, "answers per update, over all processes", ge=1)
    accumulate: int | None = _batches(
        None,
        "parts in which each process goes through its share of a batch; without: 1, or as many as"
        " keep a pass of a model from 1e9 parameters on at 4096 positions",
        ge=1,
    )
    lr: float = optimiser(2e-5, "learning rate of AdamW; small models want more", gt=0)
    warmup: int = optimiser(10, "updates until the full rate, which then falls to zero", ge=1)
    weight_decay: float = weight_decay(0.0, "AdamW")
    clip: float = gradient_clip()
    lora_rank: int = _adapters(0, "0: all parameters but W_e are trained", ge=0)
    lora_targets: str = _adapters(
        "", "such as q_proj,v_proj; without: every linear matrix of the layers"
    )
    clean_entropy: float = _objective(
        0.0, "weight of the cross-entropy at unmasked positions", ge=0
    )
    keep_reference: float = _objective(0.0, "weight of KL(reference ‖ model) at masks", ge=0)
    on_policy: float = _objective(
        0.0, "share of rows that show states which the flow visits", ge=0, lt=1
    )
    on_policy_states: Literal["flow", "predictions"] = _objective(
        "flow", "of those rows; predictions: own ones for 3/4 of the tokens, as DMax trains"
    )
    on_policy_block: int = _objective(
        0,
        "half of those rows begin with the answer up to a block of so many positions, which alone"
        " moves; 0: whole responses",
        ge=0,
    )
    checkpointing: bool | None = _memory(
        None, "recompute activations in the backward pass; without: from 1e9 parameters on"
    )
    chunk: int = _memory(CHUNK, "positions that have logits at the same time", ge=1)
    moments: Literal["float32", "8bit"] = _memory(
        "float32", "of AdamW; 8bit: a quarter of their memory, by torchao, in one process"
    )
    precision: Literal["auto", "float32", "bfloat16"] = _memory(
        "auto", "of matrix products; auto: float32 on a CPU, else bfloat16"
    )
    dtype: Literal["float32", "bfloat16", "float16"] | None = _memory(
        None, "of the written weights; without: as the model was stored"
    )

    def __post_init__(self) -> None:
        if self.keep_reference and self.reference_every != 1:
            raise InputError(
                f"reference_every is {self.reference_every}, but keep_reference needs the reference"
                " at every update: leave it at 1"
            )
        if self.on_policy_block and self.on_policy_states != "flow":
            raise InputError(
                f"on_policy_block is {self.on_policy_block}, but on_policy_states is"
                f" {self.on_policy_states!r}, which replaces tokens all over a response: leave one"
                " of the two out"
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

    def recomputes(self, parameters: int) -> bool:
        """Whether activations of a model of this size are computed again in the backward pass."""
        return parameters >= LARGE if self.checkpointing is None else self.checkpointing

    def parts(self, share: Share, longest: int = 0, parameters: int = 0) -> int:
        """Passes of one process per update: answers have up to `longest` positions."""
        parts = self.accumulate or 1
        if self.batch % (parts * share.world):
            raise InputError(
                f"batch is {self.batch}, which {share.world} process(es) with accumulate ="
                f" {parts} cannot share evenly: give a multiple of {parts * share.world}"
            )
        if self.accumulate is not None or parameters < LARGE:
            return parts
        rows = self.batch // share.world
        sizes = [n for n in range(1, rows + 1) if rows % n == 0 and n * longest <= POSITIONS]
        return rows // max(sizes, default=1)

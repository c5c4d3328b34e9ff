"""The settings of an alignment run, each with what it may be."""

from dataclasses import dataclass
from typing import Literal

import torch

from xpredflow.errors import InputError
from xpredflow.models.loader import as_dtype
from xpredflow.processes import Share
from xpredflow.training.align.readout import CHUNK


@dataclass(frozen=True)
class AlignConfig:
    """Everything that decides the result of an alignment run, beside the model and the answers."""

    updates: int = 100
    batch: int = 32  # answers per update, over all processes
    accumulate: int = 1  # parts in which each process goes through its share of a batch
    lr: float = 2e-5
    warmup: int = 10
    weight_decay: float = 0.0
    clip: float = 1.0
    lora_rank: int = 0  # 0: all parameters but W_e are trained
    lora_targets: str = ""  # such as q_proj,v_proj; without: every linear matrix of the layers
    clean_entropy: float = 0.0  # weight of the cross-entropy at unmasked positions; not the paper's
    keep_reference: float = 0.0  # weight of KL(reference ‖ model) at masks; not the paper's
    on_policy: float = 0.0  # share of rows that show states the flow visits; not the paper's
    holdout: int = 64  # answers that the consistency is measured on and that are not trained on
    reference_every: int = 1  # steps between two looks at the reference's CE; 0: never
    checkpointing: bool = False  # recompute activations in the backward pass
    chunk: int = CHUNK  # positions that have logits at the same time
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # of matrix products
    dtype: str | None = None  # of the written weights; default: as the model was stored
    save_every: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"lora_rank": 0, "reference_every": 0}
        whole = ("updates", "batch", "accumulate", "warmup", "chunk", "holdout", "save_every")
        for name in (*whole, *least):
            if getattr(self, name) < least.get(name, 1):
                raise InputError(
                    f"{name} is {getattr(self, name)}: give a whole number ≥ {least.get(name, 1)}"
                )
        for name in ("lr", "clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}: give a number above 0")
        for name in ("clean_entropy", "keep_reference"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is {getattr(self, name)}: give a number ≥ 0")
        if not 0 <= self.on_policy < 1:
            raise InputError(
                f"on_policy is {self.on_policy}: give a share of the rows, from 0 to below 1"
            )
        if self.keep_reference and self.reference_every != 1:
            raise InputError(
                f"reference_every is {self.reference_every}, but keep_reference needs the reference"
                " at every step: leave it at 1"
            )
        if self.lora_targets and not self.lora_rank:
            raise InputError(
                f"lora_targets is {self.lora_targets!r} but lora_rank is 0, which trains all"
                " parameters: set lora_rank too, e.g. lora_rank=8"
            )
        as_dtype(self.dtype)

    def rate(self, step: int) -> float:
        """Warm up, then fall linearly to zero."""
        left = (self.updates - step) / max(self.updates - self.warmup, 1)
        return self.lr * min(1.0, (step + 1) / self.warmup, left)

    def compute_dtype(self, device: torch.device) -> torch.dtype:
        """What matrices are multiplied in: bf16 is fast on accelerators and slow on CPUs."""
        if self.precision == "auto":
            return torch.float32 if device.type == "cpu" else torch.bfloat16
        return torch.float32 if self.precision == "float32" else torch.bfloat16

    def rows_at_once(self, share: Share) -> int:
        """Answers in one forward pass of one process."""
        parts = self.accumulate * share.world
        if self.batch % parts:
            raise InputError(
                f"batch is {self.batch}, which {share.world} process(es) with accumulate ="
                f" {self.accumulate} cannot share evenly: give a multiple of {parts}"
            )
        return self.batch // parts

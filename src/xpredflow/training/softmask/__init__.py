"""Fine-tuning for soft masks (SM, arXiv 2510.17206), which the `soft` decoder writes.

from xpredflow.training.softmask import SoftMaskConfig, train_softmask

done = train_softmask("tiny", "own.jsonl", SoftMaskConfig(lr=1e-4), out="runs/soft")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xpredflow.training.softmask.config import SoftMaskConfig

if TYPE_CHECKING:
    from xpredflow.training.softmask.run import SoftMasked, train_softmask

__all__ = ["SoftMaskConfig", "SoftMasked", "train_softmask"]


def __getattr__(name: str) -> Any:
    """The training needs torch, its settings do not: `train-softmask --help` shall not wait."""
    if name in ("SoftMasked", "train_softmask"):
        return getattr(import_module("xpredflow.training.softmask.run"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

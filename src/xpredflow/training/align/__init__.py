"""Alignment: the model learns to keep its own clean tokens.

from xpredflow.training.align import AlignConfig, align

done = align("tiny", "own.jsonl", AlignConfig(updates=100, lr=5e-4), out="runs/aligned")
print(done.after, done.checkpoint)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xpredflow.training.align.config import AlignConfig

if TYPE_CHECKING:
    from xpredflow.training.align.run import Aligned, align

__all__ = ["AlignConfig", "Aligned", "align"]


def __getattr__(name: str) -> Any:
    """`align` needs torch, its settings do not: `xpredflow align --help` shall not wait."""
    if name in ("Aligned", "align"):
        return getattr(import_module("xpredflow.training.align.run"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

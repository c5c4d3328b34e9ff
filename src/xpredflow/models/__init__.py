"""Masked diffusion models: checkpoints in, `xpredflow.types.Model` out. No remote code, ever."""

from xpredflow.models import dense, llada, llada2  # noqa: F401  (importing a family registers it)
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.embedded import load
from xpredflow.models.random_weights import build
from xpredflow.models.wrap import check_model, wrap
from xpredflow.models.writer import save
from xpredflow.registry import FAMILIES

__all__ = [
    "FAMILIES",
    "MaskedDiffusionModel",
    "build",
    "check_model",
    "load",
    "save",
    "wrap",
]

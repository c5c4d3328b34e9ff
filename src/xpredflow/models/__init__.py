"""Masked diffusion models: checkpoints in, `xpredflow.types.Model` out. No remote code, ever."""

from xpredflow.models import llada, llada2  # noqa: F401  (importing a family registers it)
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.embedded import load
from xpredflow.models.families import FAMILIES, register
from xpredflow.models.random_weights import build
from xpredflow.models.writer import save

__all__ = ["FAMILIES", "MaskedDiffusionModel", "build", "load", "register", "save"]

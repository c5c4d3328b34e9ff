"""Masked diffusion models: checkpoints in, `xpredflow.types.Model` out. No remote code, ever."""

from xpredflow.models import llada, llada2  # noqa: F401  (importing a family registers it)
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.building import build
from xpredflow.models.embedded import load
from xpredflow.models.registry import FAMILIES, register
from xpredflow.models.saving import save

__all__ = ["FAMILIES", "MaskedDiffusionModel", "build", "load", "register", "save"]

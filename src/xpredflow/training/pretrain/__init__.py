"""Pretraining: a small masked diffusion model from nothing, on tasks with right answers.

from xpredflow.training.pretrain import PretrainConfig, pretrain

done = pretrain(PretrainConfig(updates=8192), "runs/tiny", tasks=["minimath"], model_config="tiny")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xpredflow.training.pretrain.config import PretrainConfig

if TYPE_CHECKING:
    from xpredflow.training.pretrain.run import Pretrained, pretrain
    from xpredflow.training.pretrain.trainer import Stage

__all__ = ["PretrainConfig", "Pretrained", "Stage", "pretrain"]
_HOMES = {"Pretrained": "run", "Stage": "trainer", "pretrain": "run"}


def __getattr__(name: str) -> Any:
    """The training needs torch, its settings do not: `pretrain --help` shall not wait."""
    if name in _HOMES:
        return getattr(import_module(f"xpredflow.training.pretrain.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The step-size policy, trained with GRPO.

from xpredflow.training.policy import PolicyConfig, train_policy

done = train_policy("tiny-aligned", "minicode", PolicyConfig(budget="1/4"), out="runs/policy")
print(done.best)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xpredflow.training.policy.config import GrpoConfig, PolicyConfig

if TYPE_CHECKING:
    from xpredflow.training.policy.run import TrainedPolicy, train_policy

__all__ = ["GrpoConfig", "PolicyConfig", "TrainedPolicy", "train_policy"]


def __getattr__(name: str) -> Any:
    """The training needs torch, its settings do not: `train-policy --help` shall not wait."""
    if name in ("TrainedPolicy", "train_policy"):
        return getattr(import_module("xpredflow.training.policy.run"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

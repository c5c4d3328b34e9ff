"""Step-size policies of the flow: heuristics, the learned one, and both by name."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xpredflow.policies.spec import (
        POLICIES,
        Confidence,
        Constant,
        Jump,
        LearnedPolicy,
        Power,
        Uniform,
        describe_policy,
        load_policy,
        make_policy,
    )

__all__ = [
    "POLICIES",
    "Confidence",
    "Constant",
    "Jump",
    "LearnedPolicy",
    "Power",
    "Uniform",
    "describe_policy",
    "load_policy",
    "make_policy",
]


def __getattr__(name: str) -> Any:
    """Policies need torch, their settings do not: `train-policy --help` shall not wait."""
    if name in __all__:
        return getattr(import_module("xpredflow.policies.spec"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

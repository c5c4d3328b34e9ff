"""Results as an evaluation could have found them, without any evaluation."""

from typing import Any

from xpredflow.evaluation.statistics import Summary, wilson
from xpredflow.experiments.bench import Measured


def found(right: int, n: int = 100, passes: float = 10.0, **changes) -> Summary:
    """A row with `right` of `n` solved in `passes` passes."""
    low, high = wilson(right, n)
    values = {
        "task": "minimath",
        "decoder": "flow",
        "policy": None,
        "budget": "1/4",
        "n": n,
        "accuracy": right / n,
        "low": low,
        "high": high,
        "passes_mean": passes,
        "passes_median": passes,
        "passes_max": int(passes),
        "tokens_per_forward": 1.0,
        "pass_at": {1: right / n},
    }
    return Summary(**{**values, **changes})


def measured(
    right: int, passes: float = 10.0, budget: str = "1/4 (16 passes)", cap: int = 16, **rules: Any
) -> Measured:
    """The same with a cap and rules."""
    return Measured(found(right, passes=passes), budget, cap, rules)

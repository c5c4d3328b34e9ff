"""Results as an evaluation could have found them, without any evaluation."""

from xpredflow.evaluation.statistics import Summary, wilson


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

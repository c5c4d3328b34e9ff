"""What the trainings' optimisers have in common: settings that mean the same, and their rate.

Apart from the optimisers themselves, because the command line lists settings without torch.
"""

from typing import Any

from xpredflow.settings import grouped

optimiser = grouped("Optimiser")


def gradient_clip() -> Any:
    """The setting `clip`."""
    return optimiser(1.0, "longer gradients are shortened to this", gt=0)


def weight_decay(default: float, of: str) -> Any:
    """The setting `weight_decay` of the optimiser or optimisers named."""
    return optimiser(default, f"weight decay of {of}", ge=0)


def rate_share(step: int, updates: int, *, warmup: int, falling: float | int) -> float:
    """Of the full rate: up during `warmup`, down linearly to zero in the last `falling` updates."""
    left = (updates - step) / max(falling, 1)
    return max(0.0, min(1.0, (step + 1) / warmup, left))

"""What a learned policy sees of a position: the paper's eight numbers, or its left side as well.

`left` adds confidence and progress of the two positions before it. Left of the first one stands
the prompt, which is sure and settled. `prefix` adds to these how much of everything before it is
unsure and how much is unsettled: what depends on that may still change. Nothing is asked of the
right side: what stands there may be the padding of a shorter row, and a row must not depend on its
neighbours in a batch.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from xpredflow.engine.signals import features
from xpredflow.errors import unknown_name
from xpredflow.types import Signals

REACH = 2  # positions to the left
SIZES = {"position": 8, "left": 8 + 2 * REACH, "prefix": 8 + 2 * REACH + 2}  # numbers of each


def view_size(kind: str) -> int:
    """How many numbers a view has."""
    if kind not in SIZES:
        raise unknown_name("view", kind, SIZES)
    return SIZES[kind]


def view(
    kind: str, signals: Signals, progress: Float[Tensor, "B N"], rho: Float[Tensor, " B"]
) -> Float[Tensor, "B N F"]:
    """s of every position, the paper's eight numbers first."""
    view_size(kind)
    own = features(signals, progress, rho)
    if kind == "position":
        return own
    beside = torch.stack((signals.confidence, progress), dim=-1)
    left = [
        pad(beside, (0, 0, reach, 0), value=1.0)[:, : progress.shape[1]]
        for reach in range(1, REACH + 1)
    ]
    if kind == "left":
        return torch.cat([own, *left], dim=-1)
    missing = 1 - beside
    before = missing.cumsum(1) - missing  # in positions, from 0 upwards
    return torch.cat([own, *left, before / (1 + before)], dim=-1)

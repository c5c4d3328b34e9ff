"""Randomness per row: the same seed gives the same draws whatever else is in the batch.

Every draw starts from (seed, row, block, step) alone, so neither neighbours nor earlier draws nor
an interruption can shift it.
"""

import numpy as np
import torch

from xpredflow.types import Moment


def _entropy(moment: Moment, index: int) -> list[int]:
    block = moment.block[index] if moment.block else 0
    return [moment.seed, moment.rows[index], block, int(moment.step[index])]


def numpy_generator(moment: Moment, index: int) -> np.random.Generator:
    """The generator of the batch's `index`-th row at this moment."""
    return np.random.default_rng(_entropy(moment, index))


def torch_generator(moment: Moment, index: int, device: torch.device) -> torch.Generator:
    """The same on the device of large noise tensors."""
    state = np.random.SeedSequence(_entropy(moment, index)).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(state[0] >> np.uint64(1)))

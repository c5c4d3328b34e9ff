"""Randomness per row: the same seed gives the same draws whatever else is in the batch.

Every draw starts from (seed, row, block, step) alone, so neither neighbours nor earlier draws nor
an interruption can shift it.
"""

import numpy as np
import torch

from xpredflow.types import StepInfo


def _entropy(info: StepInfo, index: int) -> list[int]:
    seed = info.seed[index] if isinstance(info.seed, tuple) else info.seed
    block = info.block[index] if info.block else 0
    step = info.passes[index] if info.passes else int(info.step[index])
    return [seed, info.rows[index], block, step]


def numpy_generator(info: StepInfo, index: int) -> np.random.Generator:
    """The generator of the batch's `index`-th row at this info."""
    return np.random.default_rng(_entropy(info, index))


def torch_generator(info: StepInfo, index: int, device: torch.device) -> torch.Generator:
    """The same on the device of large noise tensors."""
    state = np.random.SeedSequence(_entropy(info, index)).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(state[0] >> np.uint64(1)))

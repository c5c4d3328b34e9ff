"""Draws start from (seed, row, block, step) alone, and from every one of them."""

from dataclasses import replace

import pytest
import torch

from xpredflow.engine.randomness import numpy_generator, torch_generator
from xpredflow.types import StepInfo

HERE = StepInfo(torch.tensor([3, 5]), torch.tensor([9, 9]), rows=(7, 8), seed=1, block=(2, 4))
OTHERS = {
    "seed": replace(HERE, seed=2),
    "row": replace(HERE, rows=(9, 8)),
    "block": replace(HERE, block=(3, 4)),
    "step": replace(HERE, step=torch.tensor([4, 5])),
}
CPU = torch.device("cpu")


def draws(info: StepInfo, index: int = 0) -> tuple[list[float], list[float]]:
    tensor = torch.rand(4, generator=torch_generator(info, index, CPU))
    return numpy_generator(info, index).random(4).tolist(), tensor.tolist()


@pytest.mark.parametrize("name", OTHERS)
def test_every_part_of_the_seed_counts(name: str) -> None:
    for ours, theirs in zip(draws(HERE), draws(OTHERS[name]), strict=True):
        assert ours != theirs


def test_neighbours_do_not() -> None:
    alone = StepInfo(torch.tensor([5]), torch.tensor([9]), rows=(8,), seed=1, block=(4,))
    assert draws(HERE, 1) == draws(alone, 0)
    assert draws(OTHERS["row"], 1) == draws(HERE, 1)
    assert draws(replace(HERE, budget=torch.tensor([4, 4]))) == draws(HERE)


def test_a_row_without_blocks_is_in_its_first() -> None:
    assert draws(replace(HERE, block=())) == draws(replace(HERE, block=(0, 0)))

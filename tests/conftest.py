"""Shared by all tests: one thread (two workers share two cores) and a fixed hypothesis profile.

They count on the CPU's arithmetic: accelerators are hidden, from the processes they start too.
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("steady", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("steady")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The simulated accelerator has a process of its own: torch must know it before anything else.

    Autograd's queues are made with the first backward pass, and transformers loads models otherwise
    once the device is there.
    """
    simulated = [item for item in items if "accelerator" in item.path.parts]
    if len(simulated) < len(items):
        alone = pytest.mark.skip(reason="wants a process of its own: pytest tests/accelerator")
        for item in simulated:
            item.add_marker(alone)

"""Shared by all tests: one thread (two workers share two cores) and a fixed hypothesis profile.

They count on the CPU's arithmetic: accelerators are hidden, from the processes they start too.
"""

import os
from collections.abc import Iterator
from importlib import import_module

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import pytest
import torch
from hypothesis import settings
from shape_checks import check_sparingly, next_test

check_sparingly()
torch.set_num_threads(1)
settings.register_profile("steady", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("steady")


def pytest_runtest_setup() -> None:
    next_test()


@pytest.fixture
def forgotten() -> Iterator[None]:
    """What an example registers is its own: it is gone afterwards."""
    import_module("xpredflow.tasks")  # so that the package's own tasks are known before
    registries = import_module("xpredflow.registry").REGISTRIES
    known = {kind: set(registry.loaded()) for kind, registry in registries.items()}
    yield
    for kind, registry in registries.items():
        for name, entry in registry.loaded().items():
            if name not in known[kind] and not entry.item.__module__.startswith("xpredflow."):
                registry.remove(name)


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

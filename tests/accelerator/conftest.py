"""The simulated accelerator as a fixture, and small models on it."""

from collections.abc import Callable
from functools import cache

import backend
import pytest
import simulated
import torch
from builders import write_checkpoint

from xpredflow.models import MaskedDiffusionModel, load, loader


@pytest.fixture
def device(monkeypatch) -> torch.device:
    """The device, which is also the default one: nothing needs to be told of it."""
    monkeypatch.setattr(torch, "Generator", simulated.Generator)
    monkeypatch.setattr(torch, "tensor", simulated.tensor)
    monkeypatch.setattr(loader, "default_device", lambda: simulated.NAME)
    return backend.register()


@pytest.fixture(scope="session")
def directories(tmp_path_factory):
    """Checkpoints by family: dense and bidirectional, and experts with block-causal attention."""
    root = tmp_path_factory.mktemp("families")
    for family in ("llada", "llada2"):
        write_checkpoint(root / family, family, tokenizer=True)
    return {family: root / family for family in ("llada", "llada2")}


@pytest.fixture(scope="session")
def model_on(directories) -> Callable[..., MaskedDiffusionModel]:
    """A family's model on a device, to be decoded with and not to be changed."""

    @cache
    def loaded(family: str, where: torch.device | str, dtype: str = "float32"):
        return load(directories[family], device=where, dtype=dtype)

    return loaded

"""Fixtures: one loaded model per family, and rows to feed it."""

import pytest
import torch
from builders import write_checkpoint

import xpredflow.models as models

torch.set_num_threads(1)


@pytest.fixture(scope="session", params=["llada", "llada2"])
def family(request):
    return request.param


@pytest.fixture(scope="session")
def checkpoint(family, tmp_path_factory):
    """The directory of an fp32 checkpoint and its tensors."""
    directory = tmp_path_factory.mktemp(family)
    return directory, write_checkpoint(directory, family)


@pytest.fixture(scope="session")
def model(checkpoint):
    return models.load(checkpoint[0])


@pytest.fixture(scope="session")
def llada2(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cached")
    write_checkpoint(directory, "llada2")
    return models.load(directory)

"""Checkpoints that alignment starts from."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from builders import write_checkpoint
from own_answers import own_answers

from xpredflow import load
from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.common.start import Start


@pytest.fixture(params=["llada", "llada2"])
def family(request) -> str:
    return request.param


@pytest.fixture
def start_of(tmp_path: Path) -> Callable[..., Start]:
    """A Start with a fresh checkpoint of a family."""

    def start(family: str, dtype: torch.dtype = torch.float32) -> Start:
        directory = tmp_path / f"source-{family}"
        write_checkpoint(directory, family, dtype=dtype)

        def load_source() -> MaskedDiffusionModel:
            model = load(directory)
            assert isinstance(model, MaskedDiffusionModel)
            return model

        return Start(load_source, own_answers(30), {"model": family}, {"answers_sha256": "0"})

    return start

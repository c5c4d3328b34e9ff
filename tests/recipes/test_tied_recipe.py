"""The start of the tied model: the layers of `tiny`, and one table for both ends."""

from pathlib import Path
from typing import cast

import pytest
import torch
from tied import DECODERS, GAIN, HEAD, start
from torch import Tensor

from xpredflow.decoders import make_decoder
from xpredflow.models import MaskedDiffusionModel, save
from xpredflow.models.embedded import load


def logits(model: MaskedDiffusionModel) -> Tensor:
    ids = torch.arange(20, 44).unsqueeze(0)
    places = torch.arange(24).unsqueeze(0)
    with torch.no_grad():
        return model.logits(model.embedding[ids], places, places)


def head_of(model: MaskedDiffusionModel) -> Tensor:
    return cast(Tensor, model.trunk()[2].weight)


def test_but_for_the_head_it_computes_what_tiny_does() -> None:
    old, new = load("tiny", dtype="float32"), start(tied=False)
    with torch.no_grad():
        head_of(new).copy_(head_of(old) / GAIN)
    torch.testing.assert_close(logits(new), logits(old), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("tied", [True, False])
def test_both_begin_with_the_same_predictions(tied: bool, tmp_path: Path) -> None:
    model = start(tied)
    assert torch.equal(head_of(model), load("tiny", dtype="float32").embedding)
    assert (HEAD in model.state_dict()) != tied
    save(model, tmp_path)
    again = load(tmp_path, dtype="float32")
    torch.testing.assert_close(logits(again), logits(start(not tied)))
    assert again.tokenizer is not None


@pytest.mark.parametrize("decoder", DECODERS)
def test_what_it_is_measured_with_exists(decoder: str) -> None:
    assert make_decoder(decoder)

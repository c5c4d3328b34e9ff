"""A grown model computes what the small one does, and a longer vocabulary keeps the old tokens."""

import json
from pathlib import Path

import pytest
import torch
from growing import extend_tokenizer, grow
from tokenizers import Tokenizer
from torch.nn.functional import embedding

from xpredflow.models import MaskedDiffusionModel
from xpredflow.models.embedded import assets, load

TEXT = "Tom has 23 pens, buys 4. How many pens now? Use letters."
NEW_TEXTS = ["def inner(words): return outer(words)", "Barnaby hands Odette 5 turtles."] * 3
SHAPE = {"d_model": 160, "n_heads": 5, "n_kv_heads": 5, "n_layers": 8, "mlp_hidden_size": 480}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer of tiny with 12 further tokens."""
    path = tmp_path_factory.mktemp("grown")
    extend_tokenizer(assets("tiny"), NEW_TEXTS, 716, path)
    return path


def logits(model: MaskedDiffusionModel, ids: list[int]) -> torch.Tensor:
    positions = torch.arange(len(ids)).unsqueeze(0)
    with torch.no_grad():
        return model.logits(embedding(torch.tensor([ids]), model.embedding), positions, positions)


def test_a_longer_vocabulary_keeps_old_tokens_and_spells_everything(directory: Path) -> None:
    old = Tokenizer.from_file(str(assets("tiny") / "tokenizer.json"))
    new = Tokenizer.from_file(str(directory / "tokenizer.json"))
    assert new.get_vocab_size() == 716
    assert old.get_vocab().items() <= new.get_vocab().items()
    assert new.encode(TEXT).ids == old.encode(TEXT).ids
    for text in (*NEW_TEXTS, "Žofie über_naïve(π)"):
        assert new.decode(new.encode(text).ids) == text
    assert len(new.encode(NEW_TEXTS[1]).ids) < len(old.encode(NEW_TEXTS[1]).ids)


def test_a_grown_model_is_the_small_one_at_first(directory: Path) -> None:
    small = load("tiny", dtype="float32")
    large = grow(small, directory, SHAPE, seed=0)
    ids = Tokenizer.from_file(str(directory / "tokenizer.json")).encode(TEXT).ids
    found = logits(large, ids)[..., : len(small.embedding)]
    torch.testing.assert_close(found, logits(small, ids), atol=1e-3, rtol=1e-3)


def test_a_new_token_begins_as_the_mean_of_its_parts(directory: Path) -> None:
    large = grow(load("tiny", dtype="float32"), directory, SHAPE, seed=0)
    about = json.loads((directory / "tokenizer.json").read_text())["model"]
    left, right = about["merges"][-1]
    parts = large.embedding[[about["vocab"][left], about["vocab"][right]]]
    torch.testing.assert_close(large.embedding[about["vocab"][left + right]], parts.mean(0))


def test_what_is_new_can_be_learned(directory: Path) -> None:
    """Every new part gets a gradient in one update or in the next, when what it writes to moved."""
    large = grow(load("tiny", dtype="float32"), directory, SHAPE, seed=0).train().requires_grad_()
    ids = torch.tensor([Tokenizer.from_file(str(directory / "tokenizer.json")).encode(TEXT).ids])
    positions = torch.arange(ids.shape[1]).unsqueeze(0)
    moved = {name: torch.zeros_like(value) for name, value in large.named_parameters()}
    for _ in range(2):
        large.zero_grad()
        large.logits(
            embedding(ids, large.embedding), positions, positions
        ).square().mean().backward()
        with torch.no_grad():
            for name, value in large.named_parameters():
                assert value.grad is not None
                moved[name] += value.grad.abs()
                value -= 0.01 * value.grad
    blocks = {name: grad for name, grad in moved.items() if "blocks" in name and grad.ndim == 2}
    assert len(blocks) == 8 * 7
    still = [
        name for name, grad in blocks.items() if (grad[-1] == 0).all() or not grad[:, -1].any()
    ]
    assert not still

"""Layers on two devices, one of them simulated: whatever meets on the wrong one raises."""

from typing import Any

import pytest
import torch

from xpredflow import generate, load
from xpredflow.errors import InputError
from xpredflow.models import placement
from xpredflow.models.base import on_meta
from xpredflow.models.families import family_of
from xpredflow.models.placement import place_layers

PROMPTS = [[65, 66, 67, 68], [70, 71, 72, 73, 74, 75, 76, 77, 78, 79], [65]]
OPTIONS: dict[str, Any] = {"chat": False, "gen_length": 12, "budget": 6, "max_batch": 2}


@pytest.mark.parametrize(
    ("quantize", "decoder"), [(None, "flow"), (None, "wino"), ("int8", "flow")]
)
@pytest.mark.parametrize("family", ["llada", "llada2"])
def test_the_tokens_of_one_device(device, directories, family, quantize, decoder):
    spread = load(directories[family], device_map="sim:0,cpu", quantize=quantize)
    assert torch.device("cpu") in (spread.layer_devices or [])
    for layer, place in zip(spread.trunk()[0], spread.layer_devices or [], strict=True):
        assert {t.device for t in layer.state_dict().values()} == {place}
    assert spread.embedding.device == device
    assert spread.placed is not None
    assert "the table and the head on sim" in spread.placed
    whole = load(directories[family], device="cpu", quantize=quantize)
    found, expected = (
        [done.ids for done in generate(model, PROMPTS, decoder=decoder, **OPTIONS)]
        for model in (spread, whole)
    )
    assert found == expected


def test_auto_takes_every_accelerator(device, directories):
    model = load(directories["llada"], device_map="auto")
    assert model.layer_devices == [device] * 2


def test_two_places_are_refused(directories):
    others: list[dict[str, Any]] = [{"device": "cpu"}, {"tensor_parallel": True}]
    for other in others:
        with pytest.raises(InputError, match=r"device_map is 'auto' beside .*: give one"):
            load(directories["llada"], device_map="auto", **other)


CONFIG = {
    "architectures": ["LLaDAModelLM"],
    "model_type": "llada",
    "d_model": 64,
    "n_heads": 4,
    "n_layers": 12,
    "mlp_hidden_size": 192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "max_sequence_length": 128,
    "vocab_size": 1000,
    "embedding_size": 1000,
    "mask_token_id": 258,
    "eos_token_id": 257,
}
LAYER = 64 * 64 * 4 + 64 * 192 * 3 + 128  # weights
ENDS = 2 * 1000 * 64 + 64


def layers_on(monkeypatch, *rooms, quantize=None):
    """How many layers go to devices with so many free bytes each, in bfloat16."""
    devices = [torch.device("cuda", i) for i in range(len(rooms))]
    free = dict(zip(devices, rooms, strict=True))
    monkeypatch.setattr(placement, "free_bytes", free.__getitem__)
    model = on_meta(family_of(CONFIG), CONFIG)
    placed = place_layers(model, devices, torch.bfloat16, quantize)
    assert [placed.of(f"model.transformer.blocks.{i}.q_proj.weight") for i in range(12)] == (
        placed.layers
    )
    assert placed.of("model.transformer.ff_out.weight") == devices[0]
    return [placed.layers.count(one) for one in devices]


def test_layers_are_spread_evenly(monkeypatch):
    """The first device has the table and the head besides: as much as two layers each."""
    first, *others = layers_on(monkeypatch, None, None, None)
    assert first + sum(others) == 12
    assert first < min(others)
    assert max(others) - min(others) <= 2


def test_a_small_device_gets_what_fits(monkeypatch):
    room = int((ENDS + 2.5 * LAYER) * 2 / placement.USED_SHARE)
    assert layers_on(monkeypatch, room, None) == [2, 10]
    assert layers_on(monkeypatch, room, None, quantize="int4")[0] > 2


def test_what_fits_nowhere_is_refused(monkeypatch):
    room = int((ENDS + 2.5 * LAYER) * 2)
    with pytest.raises(InputError, match=r"the weights take .* free on cuda:0, cuda:1: add"):
        layers_on(monkeypatch, room, room)

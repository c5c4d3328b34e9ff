"""Adapters: merged they give the same logits, and nothing else changes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_alignment import SMALL, log_of

from xpredflow import InputError, load
from xpredflow.training.align import lora
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.start import Start


def test_merged_adapters_give_the_same_logits(
    family: str, start_of: Callable[..., Start], tmp_path: Path
) -> None:
    start = start_of(family)
    model, plain = start.load(), start.load()
    inputs, places = model.embedding[torch.arange(8)[None]], torch.arange(8)[None]
    names = {"llada": "q_proj,ff_out", "llada2": "query_key_value,up_proj"}[family]
    lora.add_adapters(model, 4, names, seed=0)
    original = plain.logits(inputs, places, places)
    assert torch.equal(model.logits(inputs, places, places), original)
    adapters = [p for p in model.parameters() if p.requires_grad]
    layers = {"llada": 2 * 2, "llada2": 3 + 3}[family]  # the shared experts have an up_proj too
    assert len(adapters) == 2 * layers
    for parameter in adapters:
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(1))
    adapted = model.logits(inputs, places, places)
    assert (adapted - original).abs().max() > 0.1
    with lora.without_adapters(model):
        assert torch.equal(model.logits(inputs, places, places), original)
    assert torch.equal(model.logits(inputs, places, places), adapted)
    found = lora.adapters_of(model)
    assert len(found) == layers
    for name, parameter in plain.named_parameters():
        if name in found:
            parameter.data = found.pop(name).merged(parameter.data)
    assert not found
    torch.testing.assert_close(plain.logits(inputs, places, places), adapted, rtol=1e-4, atol=1e-4)


def test_adapters_leave_everything_else_alone(
    start_of: Callable[..., Start], tmp_path: Path
) -> None:
    start = start_of("llada")
    config = replace(SMALL, lora_rank=2, lora_targets="q_proj, v_proj")
    training = Alignment(start, config, tmp_path / "run")
    assert training.reference is None
    list(training)
    log = log_of(training)
    assert log[0]["ce_masked"] == log[0]["reference_ce_masked"]
    training.finish(tmp_path / "model")
    before, after = start.load().state_dict(), load(tmp_path / "model").state_dict()  # type: ignore[attr-defined]
    changed = {n.split(".")[-2] for n in before if not torch.equal(before[n], after[n])}
    assert changed == {"q_proj", "v_proj"}


def test_adapters_need_a_known_name_and_peft(
    start_of: Callable[..., Start], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = start_of("llada")
    wrong = replace(SMALL, lora_rank=2, lora_targets="q_prj")
    with pytest.raises(InputError, match=r"unknown lora_targets 'q_prj' .*did you mean 'q_proj'"):
        Alignment(start, wrong, tmp_path / "a")
    monkeypatch.setattr(lora, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"peft is not installed: pip install 'xpredflow\[train\]"):
        Alignment(start, replace(SMALL, lora_rank=2), tmp_path / "b")

"""The memory of a run: the formula beside what runs of a small model hold."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from builders import CONFIGS
from own_answers import own_answer
from peak_bytes import PeakBytes
from small_alignment import SMALL, log_of

from xpredflow import InputError
from xpredflow.models import MaskedDiffusionModel, attention
from xpredflow.models.base import on_meta
from xpredflow.models.families import family_of
from xpredflow.models.random_weights import build
from xpredflow.processes import Share
from xpredflow.training.align import optimizer
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.lora import add_adapters
from xpredflow.training.align.memory import Footprint, Work, announced, footprint
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.start import Start

LLADA = {
    "architectures": ["LLaDAModelLM"],
    "d_model": 128,
    "n_heads": 4,
    "n_kv_heads": 4,
    "n_layers": 6,
    "mlp_hidden_size": 384,
    "vocab_size": 400,
    "embedding_size": 400,
    "max_sequence_length": 512,
    "mask_token_id": 399,
    "eos_token_id": 398,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
RUN = replace(SMALL, updates=2, batch=8, chunk=64, holdout=2)


MOE = {**CONFIGS["llada2"], "hidden_size": 128, "moe_intermediate_size": 96}
ANSWERS = [own_answer(number, response_length=56) for number in range(30)]
BF16 = {"precision": "bfloat16"}


def held_and_expected(shape: dict, config: AlignConfig, out: Path) -> tuple[int, Footprint]:
    """The most bytes at the same time, from the model's own on, and what the formula says."""
    start = Start(lambda: build(shape, 0), ANSWERS, {"model": "m"}, {"weights": "0"})
    with PeakBytes() as held:
        training = Alignment(start, config, out)
        held.peak = held.now
        list(training)
    expected = training.expected()
    assert expected is not None
    return held.peak, expected


@pytest.fixture
def like_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention stays in bf16, which a CPU takes to fp32 for speed; the formula knows both."""
    monkeypatch.setattr(attention, "attends_in_float", lambda device: False)


IN_BF16 = [
    {**BF16, "checkpointing": True, "reference_every": 0},
    {**BF16, "lora_rank": 2},
    {**BF16, "lora_rank": 2, "checkpointing": True},
]
IN_FLOAT = [{}, {"checkpointing": True, "accumulate": 4}, {"lora_rank": 2}]


@pytest.mark.parametrize("more", [*IN_FLOAT, *IN_BF16], ids=str)
def test_the_formula_says_what_a_run_holds(more: dict, tmp_path: Path) -> None:
    held, expected = held_and_expected(LLADA, replace(RUN, **more), tmp_path / "run")
    assert held == pytest.approx(expected.total, rel=0.08)


@pytest.mark.usefixtures("like_an_accelerator")
@pytest.mark.parametrize("more", IN_BF16, ids=str)
def test_so_it_does_where_attention_is_in_bf16(more: dict, tmp_path: Path) -> None:
    held, expected = held_and_expected(LLADA, replace(RUN, **more), tmp_path / "run")
    assert held == pytest.approx(expected.total, rel=0.08)


def test_experts_are_counted_as_if_all_blocks_were_the_last(tmp_path: Path) -> None:
    held, expected = held_and_expected(MOE, replace(RUN, checkpointing=True), tmp_path / "run")
    assert 0.8 * expected.total < held < 1.05 * expected.total


def llada_8b(lora_rank: int = 0) -> MaskedDiffusionModel:
    widths = {"d_model": 4096, "n_heads": 32, "n_kv_heads": 32, "mlp_hidden_size": 12288}
    shape = {**LLADA, **widths, "n_layers": 32, "vocab_size": 126464, "embedding_size": 126464}
    model = on_meta(family_of(shape), shape).requires_grad_()
    model.embedding.requires_grad_(False)
    if lora_rank:
        add_adapters(model, lora_rank, "", seed=0)
    return model


def test_the_defaults_fit_llada_8b() -> None:
    def gigabytes(config: AlignConfig, world: int, longest: int = 1024) -> float:
        model = llada_8b(config.lora_rank)
        size = sum(p.numel() for p in model.parameters())
        parts = config.parts(Share(0, world), longest, size)
        positions = config.batch // (parts * world) * longest
        again = config.recomputes(size)
        assert again
        work = Work(positions, parts, world, torch.bfloat16, again)
        return footprint(model, config, work).total / 1e9

    assert 16 < gigabytes(AlignConfig(lora_rank=8), 1) < 22  # of 24
    assert gigabytes(AlignConfig(lora_rank=64), 1, longest=4096) < 24
    assert gigabytes(AlignConfig(), 8) < 36  # of 40
    assert gigabytes(AlignConfig(), 1) > 80


def test_a_run_says_what_it_expects_where_memory_is_its_own() -> None:
    footprint = Footprint(16_000_000_000, 0, 80_000_000, 160_000_000, 2_300_000_000)
    assert announced(footprint, torch.device("cpu"), 1) is None
    assert announced(footprint, torch.device("mps"), 1) == (
        "expects 18.5 GB (weights 16.0, gradients 0.1, moments 0.2, activations 2.3) on mps"
    )
    assert "on each of 8 devices" in (announced(footprint, torch.device("mps"), 8) or "")


def test_moments_in_8_bits_are_saved_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    optim = pytest.importorskip("torchao.optim")
    from torchao.optim.subclass_8bit import OptimState8bit

    start = Start(lambda: build(LLADA, 0), ANSWERS, {"model": "m"}, {"weights": "0"})
    config = replace(RUN, moments="8bit", updates=4, save_every=2)
    with torch.compiler.set_stance("force_eager"):  # compiling takes longer than the run
        whole = Alignment(start, config, tmp_path / "whole")
        assert isinstance(whole.optimizer, optim.AdamW8bit)
        list(whole)
        killed = iter(Alignment(start, config, tmp_path / "killed"))
        assert [next(killed).step for _ in range(3)] == [1, 2, 3]
        again = Alignment(start, config, tmp_path / "killed", resume=True)
        assert again.step == 2
        list(again)
    moments = [entry["exp_avg"] for entry in again.optimizer.state.values()]
    assert any(isinstance(moment, OptimState8bit) for moment in moments)
    assert log_of(again) == log_of(whole)
    with pytest.raises(InputError, match="but 2 processes share them out"):
        Alignment(start, config, tmp_path / "two", share=Share(0, 2))
    monkeypatch.setattr(optimizer, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="torchao is not installed"):
        Alignment(start, config, tmp_path / "none")

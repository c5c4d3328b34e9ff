"""What weights are loaded as where it is left to the machine."""

from pathlib import Path

import pytest
import torch
from builders import write_checkpoint
from dense_checkpoints import write_kind
from typer.testing import CliRunner

import xpredflow.models as models
from xpredflow.cli import app
from xpredflow.models import machine, precision
from xpredflow.models.precision import Format, choose
from xpredflow.models.shards import Stored

CPU = torch.device("cpu")
MDLM = "Qwen3-0.6B-diffusion-mdlm-v0.1"


def checkpoint(dtype, weights=1_000_000_000, table=200_000_000):
    """A table and the rest."""
    sizes = {"table": table, "rest": weights - table}
    return [Stored(name, Path(), dtype, (size,), 0) for name, size in sizes.items()], table


@pytest.fixture
def on(monkeypatch):
    """A machine with so many free gigabytes, with or without instructions for bfloat16."""

    def set_up(free, fast=True):
        known = None if free is None else round(free * 1e9)
        monkeypatch.setattr(precision, "free_bytes", lambda device: known)
        monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: fast)

    return set_up


@pytest.mark.parametrize(
    ("stored", "free", "fast", "chosen"),
    [
        (torch.bfloat16, 16, True, "bfloat16"),
        (torch.bfloat16, 16, False, "float32"),
        (torch.bfloat16, 4, False, "bfloat16"),  # float32 takes 4 GB
        (torch.bfloat16, 2.5, True, "int8"),  # bfloat16 takes 2 GB
        (torch.bfloat16, 1.6, True, "int4"),  # int8 takes 1.2 GB
        (torch.bfloat16, 0.1, True, "int4"),  # nothing fits: the smallest
        (torch.float32, 16, True, "float32"),
        (torch.float32, 4, True, "bfloat16"),
        (torch.float16, 16, True, "float32"),  # CPUs overflow in float16
        (torch.bfloat16, None, True, "bfloat16"),
    ],
)
def test_the_first_that_fits(on, stored, free, fast, chosen):
    on(free, fast)
    choice = choose(*checkpoint(stored), CPU)
    assert str(choice.format) == chosen
    assert choice.why.startswith(f"weights in {chosen}")
    assert "\n" not in choice.why


def test_an_accelerator_keeps_what_is_stored(on):
    on(16, fast=False)
    cuda = torch.device("cuda", 0)
    assert choose(*checkpoint(torch.float16), cuda).format == Format(torch.float16)
    assert choose(*checkpoint(torch.bfloat16), cuda).format == Format(torch.bfloat16)
    on(2.5)
    assert choose(*checkpoint(torch.float16), cuda).format == Format(torch.float16, "int8")


def test_sizes_are_those_of_the_loaded_model(tmp_path):
    write_checkpoint(tmp_path, "llada", d_model=256, n_heads=4, n_kv_heads=4, mlp_hidden_size=1024)
    for quantize in (None, "int8", "int4"):
        model = models.load(tmp_path, dtype="bfloat16", quantize=quantize)
        held = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
        plain = models.load(tmp_path)
        weights = sum(tensor.numel() for tensor in plain.parameters())
        expected = Format(torch.bfloat16, quantize).size(weights, plain.embedding.numel())
        assert held == pytest.approx(expected, rel=0.1)


def test_loading(tmp_path, on):
    directory = write_kind(tmp_path, MDLM)
    on(16)
    model = models.load(directory, dtype="auto")
    assert (model.embedding.dtype, model.quantized) == (torch.float32, None)
    on(0.5)
    model = models.load(directory, dtype="auto")
    assert (model.embedding.dtype, model.quantized) == (torch.bfloat16, "int4")
    assert model.name == f"{MDLM} (int4)"
    assert "and float32 takes" in (model.chosen_because or "")
    # what is named wins
    assert models.load(directory, dtype="float32").quantized is None
    assert models.load(directory, dtype="auto", quantize="int8").quantized == "int8"
    assert models.load("tiny", dtype="auto").embedding.dtype == torch.float32


def test_the_command_says_it_and_flags_win(tmp_path, on):
    write_checkpoint(tmp_path / "a", "llada", tokenizer=True)
    words = ["generate", "ab", "-m", str(tmp_path / "a"), "-d", "mask", "-o", "gen_length=4"]
    on(0.5)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "note: weights in int4" in done.stderr
    for flags in (["--dtype", "float32"], ["--quantize", "int8"]):
        done = CliRunner().invoke(app, [*words, *flags])
        assert done.exit_code == 0, done.output
        assert "weights in" not in done.stderr
    compared = ["compare", "-m", str(tmp_path / "a"), "--dtype", "auto", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, compared)
    assert done.exit_code == 2
    assert "name it, such as bfloat16" in done.output


def test_this_machine_answers():
    free = machine.free_bytes(CPU)
    assert free is None or free > 0
    assert machine.multiplies_bfloat16() in (True, False)

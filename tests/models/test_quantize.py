"""Packed weights: what each format loses at most, what is packed, and that models still answer."""

import numpy as np
import pytest
import torch
from builders import write_checkpoint
from dense_checkpoints import write_kind
from own_answers import own_answers
from typer.testing import CliRunner

import xpredflow.models as models
from xpredflow import align, evaluate, generate
from xpredflow.cli import app
from xpredflow.errors import InputError
from xpredflow.models import quantize
from xpredflow.models.quantize import PackedLinear, PackedWeight
from xpredflow.models.shards import Stored

FORMATS = ("int8", "int4")


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def written_out(weight, bits):
    """The formats as a reader would write them down: row by row, group by group."""
    rows = []
    for row in weight.double().numpy():
        if bits == 8:
            scale = np.abs(row).max() / 127
            rows.append(np.round(row / scale) * scale)
            continue
        groups = row.reshape(-1, quantize.group_size(len(row)))
        parts = []
        for group in groups:
            step = (group.max() - group.min()) / 15
            parts.append(np.round((group - group.min()) / step) * step + group.min())
        rows.append(np.concatenate(parts))
    return torch.from_numpy(np.stack(rows)).float()


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("columns", [8, 48, 96, 256])
def test_unpacks_to_what_is_written_down(bits, columns):
    weight = drawn(6, columns)
    packed = PackedWeight.of(weight, bits)
    torch.testing.assert_close(packed[:], written_out(weight, bits), rtol=1e-4, atol=1e-5)
    step = packed.scale if bits == 8 else packed.scale.expand(*packed.scale.shape[:-1], columns)
    assert ((packed[:] - weight).abs() <= step.amax() * 0.5001).all()  # half a step at most
    bytes_per_weight = packed.values.nbytes / weight.numel()
    assert bytes_per_weight == bits / 8


@pytest.mark.parametrize("bits", [8, 4])
def test_rows_of_zeros_and_stacks(bits):
    assert torch.equal(PackedWeight.of(torch.zeros(3, 16), bits)[:], torch.zeros(3, 16))
    stack = drawn(5, 4, 32)
    packed = PackedWeight.of(stack, bits)
    assert packed.shape == (5, 4, 32)
    for i in range(5):
        assert torch.equal(packed[i], PackedWeight.of(stack[i], bits)[:])
    chosen = torch.tensor([3, 0, 3])
    assert torch.equal(packed[chosen][0], packed[3])


@pytest.mark.parametrize("bits", [8, 4])
def test_a_layer_unpacks_a_few_rows_at_a_time(bits, monkeypatch):
    layer, x = PackedLinear(PackedWeight.of(drawn(40, 32), bits)), drawn(2, 3, 32, seed=1)
    whole = layer(x)
    torch.testing.assert_close(whole, x @ layer.weight[:].T)
    monkeypatch.setattr(quantize, "UNPACKED_AT_ONCE", 32 * 7)
    torch.testing.assert_close(layer(x), whole)
    assert layer(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_packed(checkpoint, family, format, dtype):
    plain = models.load(checkpoint[0], dtype=dtype)
    model = models.load(checkpoint[0], dtype=dtype, quantize=format)
    assert (model.quantized, model.name) == (format, f"{plain.name} ({format})")
    assert torch.equal(model.embedding, plain.embedding)
    left = {name for name, p in model.named_parameters() if p.ndim > 1}
    table = "model.transformer.wte.weight" if family == "llada" else "model.word_embeddings.weight"
    routers = {f"model.layers.{i}.mlp.gate.weight" for i in (1, 2)} if family == "llada2" else set()
    assert left == {table} | routers
    _, _, head = model.trunk()
    assert isinstance(head, PackedLinear)
    assert head.weight.bits == 8
    assert logits(model).dtype == plain.embedding.dtype
    if dtype == "float32":  # the same as a plain model with the unpacked weights
        unpacked = {name: p[:] for name, p in packed_weights(model)}
        assert set(unpacked) | left == {n for n, p in plain.named_parameters() if p.ndim > 1}
        before = logits(plain)
        plain.load_state_dict({**plain.state_dict(), **unpacked})
        torch.testing.assert_close(logits(model), logits(plain), rtol=1e-4, atol=1e-4)
        assert not torch.equal(logits(plain), before)


def packed_weights(model):
    return [(name, m) for name, m in model.named_modules() if isinstance(m, PackedWeight)]


def logits(model):
    columns = torch.arange(12).expand(2, -1)
    with torch.no_grad():
        return model.logits(drawn(2, 12, 32), columns, columns)


@pytest.mark.parametrize("format", FORMATS)
def test_memory(tmp_path, format):
    write_checkpoint(tmp_path, "llada", d_model=256, n_heads=4, n_kv_heads=4, mlp_hidden_size=1024)

    def held(model):
        table = model.embedding
        tensors = [*model.parameters(), *model.buffers()]
        return sum(t.nbytes for t in tensors if t is not table)

    plain = held(models.load(tmp_path, dtype="bfloat16"))
    share = held(models.load(tmp_path, dtype="bfloat16", quantize=format)) / plain
    assert share < {"int8": 0.52, "int4": 0.35}[format]


BOUND = {"int8": 0.03, "int4": 0.15}  # relative error of the embedded models' logits


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["tiny-aligned", "tiny-moe-aligned"])
def test_embedded_models_still_answer(name, format):
    plain = models.load(name)
    packed = models.load(name, quantize=format)
    ids = torch.arange(5, 45)[None]
    inputs, columns = plain.embedding[ids].detach(), torch.arange(40)[None]
    with torch.no_grad():
        exact = plain.logits(inputs, columns, columns)
        got = packed.logits(inputs, columns, columns)
    error = float((got - exact).norm() / exact.norm())
    assert error < BOUND[format]
    before, after = (
        evaluate(model, "minimath", limit=8, decoder="threshold:0.9").summary.accuracy
        for model in (plain, packed)
    )
    assert after >= before - 0.25


def test_only_decodes(tmp_path, checkpoint):
    model = models.load(checkpoint[0], quantize="int8")
    with pytest.raises(InputError, match=r"quantize='int8' and cannot be saved"):
        models.save(model, tmp_path / "saved")
    with pytest.raises(InputError, match=r"quantize='int8' and cannot be trained"):
        align(model, own_answers(8), out=tmp_path / "run")
    assert generate(model, [[65, 66]], gen_length=4, decoder="mask")[0].passes == 4


def test_refusals(tmp_path):
    write_checkpoint(tmp_path / "a", "llada")
    with pytest.raises(InputError, match="unknown quantize 'int3'"):
        models.load(tmp_path / "a", quantize="int3")
    with pytest.raises(InputError, match="20 columns, no multiple of 8: use 'int8'"):
        quantize.group_size(20)


def test_the_command(tmp_path):
    write_checkpoint(tmp_path / "a", "llada", tokenizer=True)
    arguments = ["generate", "ab", "-m", str(tmp_path / "a"), "-d", "mask", "-o", "gen_length=4"]
    done = CliRunner().invoke(app, [*arguments, "--quantize", "int4", "--json"])
    assert done.exit_code == 0, done.output
    bad = CliRunner().invoke(app, [*arguments, "--quantize", "int3"])
    assert bad.exit_code == 2
    assert "unknown quantize 'int3'" in bad.output


@pytest.mark.parametrize("format", FORMATS)
def test_biases_are_kept(tmp_path, format):
    directory = write_kind(tmp_path, "Fast_dLLM_v2_1.5B")
    plain, packed = models.load(directory), models.load(directory, quantize=format)
    layer = packed.model.layers[0].self_attn.q_proj  # type: ignore[union-attr]
    assert isinstance(layer, PackedLinear)
    assert torch.equal(layer.bias, plain.model.layers[0].self_attn.q_proj.bias)  # type: ignore[union-attr]
    x = drawn(2, 3, 32)
    torch.testing.assert_close(layer(x), x @ layer.weight[:].T + layer.bias)  # type: ignore[union-attr]


@pytest.mark.parametrize("format", FORMATS)
def test_no_matrix_is_ever_held_unpacked(checkpoint, format, monkeypatch):
    whole = models.load(checkpoint[0], quantize=format)
    monkeypatch.setattr(quantize, "READ_AT_ONCE", 100)
    held, read = [], Stored.read_into
    monkeypatch.setattr(Stored, "read_into", lambda s, t: (held.append((s.key, t)), read(s, t)))
    model = models.load(checkpoint[0], quantize=format)
    packed = {name for name, _ in packed_weights(model)}
    plain = {name for name, _ in model.named_parameters()} | {n for n, _ in model.named_buffers()}
    sizes = [t.numel() for key, t in held if key not in plain]
    assert packed
    assert sizes
    assert max(sizes) <= 100
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name

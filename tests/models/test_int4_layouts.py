"""GPTQ and AWQ checkpoints mean what their formats say, packed or not; others are refused."""

import json

import pytest
import torch
from builders import CONFIGS, write_weights
from int4_checkpoints import KINDS, write_int4
from safetensors.torch import load_file, save_file

import xpredflow.models as models
from xpredflow import InputError, generate
from xpredflow.models.quantize import PackedLinear, PackedWeight


@pytest.fixture(scope="module", params=[(f, k) for f in CONFIGS for k in KINDS], ids=str)
def written(request, tmp_path_factory):
    """A quantised checkpoint, and one that has the same weights unquantised."""
    family, kind = request.param
    directory = tmp_path_factory.mktemp("int4")
    meant = write_int4(directory / "packed", family, kind, group=-1 if kind == "gptq_v2" else 8)
    write_weights(directory / "plain", meant)
    config = {**CONFIGS[family], "torch_dtype": "float32"}
    (directory / "plain/config.json").write_text(json.dumps(config))
    return directory / "packed", models.load(directory / "plain")


def logits(model):
    inputs = torch.randn(2, 12, 32, generator=torch.Generator().manual_seed(0))
    columns = torch.arange(12).expand(2, -1)
    with torch.no_grad():
        return model.logits(inputs, columns, columns)


def test_unpacked_it_is_the_plain_model(written, tmp_path):
    directory, plain = written
    model = models.load(directory, quantize="none")
    assert model.quantized is None
    state = model.state_dict()
    assert state.keys() == plain.state_dict().keys()
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(state[name], tensor, rtol=1e-6, atol=1e-6)
    models.save(model, tmp_path / "saved")  # and can be trained and saved like it
    assert torch.equal(logits(models.load(tmp_path / "saved")), logits(model))


def test_it_stays_in_four_bits_and_means_the_same(written, tmp_path):
    directory, plain = written
    model = models.load(directory)
    assert model.quantized == "int4"
    packed = {name: m for name, m in model.named_modules() if isinstance(m, PackedWeight)}
    left = {name for name, p in model.named_parameters() if p.ndim > 1}
    assert packed.keys() | left == {n for n, p in plain.named_parameters() if p.ndim > 1}
    for name, weight in packed.items():
        assert weight.values.numel() * 2 == plain.get_parameter(name).numel()
        torch.testing.assert_close(weight[:], plain.get_parameter(name), rtol=1e-5, atol=1e-6)
    assert not isinstance(model.trunk()[2], PackedLinear)  # as it is stored
    torch.testing.assert_close(logits(model), logits(plain), rtol=1e-4, atol=1e-4)
    assert generate(model, [[65, 66]], gen_length=4, decoder="mask")[0].passes == 4
    with pytest.raises(InputError, match=r"cannot be saved.*quantize='none' where the files"):
        models.save(model, tmp_path / "saved")


def test_other_formats_are_made_of_it(written):
    directory, plain = written
    wide = models.load(directory, quantize="int8")
    assert wide.quantized == "int8"
    for name, module in wide.named_modules():
        if isinstance(module, PackedWeight):
            apart = (module[:] - plain.get_parameter(name)).abs()
            assert (apart <= 0.501 * module.scale).all()  # half a step of its row
    narrow = models.load(directory, quantize="int4", dtype="bfloat16")
    head = narrow.trunk()[2]
    assert isinstance(head, PackedLinear)
    assert head.weight.bits == 8
    assert logits(narrow).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"quant_method": "fp8"}, "quant_method 'fp8'"),
        ({"quant_method": "compressed-tensors"}, "quant_method 'compressed-tensors'"),
        ({"quant_method": "auto-round"}, "quant_method 'auto-round'"),
        ({"bits": 8}, "quant_method 'gptq', bits 8"),
        ({"checkpoint_format": "marlin"}, "format 'marlin'"),
        ({"is_marlin_format": True}, "format 'marlin'"),
        ({"pack_dtype": "int64"}, "pack_dtype 'int64'"),
        ({"quant_method": "awq", "version": "gemv_fast"}, "quant_method 'awq', format 'gemv_fast'"),
    ],
    ids=str,
)
def test_unknown_layouts_are_refused_by_name(tmp_path, said, named):
    write_int4(tmp_path, "llada", "gptq", **said)
    with pytest.raises(InputError, match=rf"{named}.*not read here.*GPTQ.*AWQ.*unquantised"):
        models.load(tmp_path)


LAYER = "model.transformer.blocks.0.q_proj"


@pytest.mark.parametrize(
    ("changes", "quantize", "complaint"),
    [
        ({f"{LAYER}.qzeros": None}, None, rf"lacks tensor '{LAYER}.qzeros'"),
        ({f"{LAYER}.weight": torch.zeros(32, 32)}, None, f"both '{LAYER}.weight' and"),
        ({f"{LAYER}.g_idx": torch.full((32,), 9).int()}, None, "groups from 9 to 9.*there are 4"),
        ({f"{LAYER}.g_idx": torch.zeros(32).int()}, None, "not 8 columns each.*quantize='none'"),
        ({f"{LAYER}.g_idx": torch.zeros(32).int()}, "none", ""),
        ({f"{LAYER}.scales": torch.ones(4, 16).half()}, None, r"\(4, 16\).*expected is \(4, 32\)"),
        ({f"{LAYER}.scales": torch.ones(4).half()}, None, "expected two dimensions"),
        ({"extra": torch.zeros(2).int()}, None, "'extra'.*int32, which no weight is"),
    ],
    ids=str,
)
def test_damaged_files_are_refused_by_name(tmp_path, changes, quantize, complaint):
    write_int4(tmp_path, "llada", "gptq")
    tensors = {k: t for file in tmp_path.glob("*.safetensors") for k, t in load_file(file).items()}
    tensors = {key: t for key, t in (tensors | changes).items() if t is not None}
    save_file(tensors, tmp_path / "model.safetensors")
    if not complaint:
        assert models.load(tmp_path, quantize=quantize).quantized is None
        return
    with pytest.raises(InputError, match=complaint):
        models.load(tmp_path, quantize=quantize)


def test_a_quantised_checkpoint_must_say_so(tmp_path):
    write_int4(tmp_path, "llada", "awq")
    config = json.loads((tmp_path / "config.json").read_text())
    del config["quantization_config"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"int32, which no weight is.*quantization_config"):
        models.load(tmp_path)


def test_the_machine_need_not_choose(tmp_path):
    write_int4(tmp_path, "llada2", "awq")
    model = models.load(tmp_path, dtype="auto")
    assert model.quantized == "int4"
    assert model.chosen_because == "weights in int4, as they are stored"

"""Loading: precision, tokenizer, families, and an error that names the culprit for every flaw."""

import pytest
import torch
from builders import (
    CONFIGS,
    LLADA,
    LLADA2,
    weights,
    write_checkpoint,
    write_tokenizer,
    write_weights,
)
from torch.utils._python_dispatch import TorchDispatchMode

import xpredflow.models as models
from xpredflow.errors import InputError
from xpredflow.models import source


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16])
def test_dtype_none_keeps_what_is_stored(tmp_path, family, stored):
    said = {"torch_dtype": str(stored).removeprefix("torch.")}
    raw = write_checkpoint(tmp_path, family, dtype=stored, **said)  # type: ignore[arg-type]
    model = models.load(tmp_path)
    state = model.state_dict()
    assert {t.dtype for t in state.values()} == {stored}
    for key, (name, row) in model.places().items():
        assert torch.equal(state[name] if row is None else state[name][row], raw[key]), key


def test_a_cpu_computes_float16_in_float32_unless_told(tmp_path, family):
    raw = write_checkpoint(tmp_path, family, dtype=torch.float16, torch_dtype="float16")
    model = models.load(tmp_path, device="cpu")
    assert model.stored_dtype == torch.float16
    state = model.state_dict()
    assert {t.dtype for t in state.values()} == {torch.float32}
    for key, (name, row) in model.places().items():
        assert torch.equal(state[name] if row is None else state[name][row], raw[key].float()), key
    assert models.load(tmp_path, dtype="float16", device="cpu").embedding.dtype == torch.float16
    assert models.load(tmp_path, device="meta").embedding.dtype == torch.float16


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", torch.bfloat16, torch.float64])
def test_dtype_converts(tmp_path, family, dtype):
    raw = write_checkpoint(tmp_path, family, dtype=torch.bfloat16)
    model = models.load(tmp_path, dtype=dtype)
    expected = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    assert model.embedding.dtype == expected
    head = "model.transformer.ff_out.weight" if family == "llada" else "lm_head.weight"
    assert torch.equal(model.state_dict()[head], raw[head].to(expected))


class Operations(TorchDispatchMode):
    """Records which operations were run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name)
        return func(*args, **(kwargs or {}))


def test_nothing_is_initialised_that_is_then_overwritten(tmp_path, family):
    write_checkpoint(tmp_path, family)
    with Operations() as seen:
        models.load(tmp_path)
    assert "aten::copy_" in seen.names
    assert not {"aten::normal_", "aten::uniform_"} & {*seen.names}


def test_layers_made_after_loading_are_initialised_again(tmp_path, family):
    write_checkpoint(tmp_path, family)
    models.load(tmp_path)
    assert torch.nn.Embedding(8, 4).weight.std() > 0.1


def test_tensors_longer_than_one_chunk(tmp_path, family, monkeypatch):
    raw = write_checkpoint(tmp_path, family)
    monkeypatch.setattr("xpredflow.models.shards.CHUNK", 1000)
    state = models.load(tmp_path).state_dict()
    assert torch.equal(next(iter(state.values())), raw[next(iter(state))])


def test_the_router_is_never_narrowed(tmp_path):
    raw = weights("llada2", LLADA2, torch.bfloat16)
    raw = {k: v.float() + 1e-4 if ".mlp.gate." in k else v for k, v in raw.items()}
    write_checkpoint(tmp_path, "llada2")
    write_weights(tmp_path, raw)
    for dtype in (None, "bfloat16"):
        state = models.load(tmp_path, dtype=dtype).state_dict()
        assert torch.equal(
            state["model.layers.1.mlp.gate.expert_bias"], raw["model.layers.1.mlp.gate.expert_bias"]
        )
        assert state["lm_head.weight"].dtype == torch.bfloat16


def test_norms_may_be_stored_wider(tmp_path, family):
    raw = weights(family, CONFIGS[family], torch.bfloat16)
    write_checkpoint(tmp_path, family)
    write_weights(tmp_path, {k: v.float() if v.ndim == 1 else v for k, v in raw.items()})
    model = models.load(tmp_path)
    columns = torch.arange(4)[None]
    assert model.logits(torch.randn(1, 4, 32), columns, columns).dtype == torch.bfloat16


def test_mixed_matrices_need_a_choice(tmp_path):
    raw = weights("llada", LLADA, torch.bfloat16)
    key = "model.transformer.blocks.1.q_proj.weight"
    write_checkpoint(tmp_path, "llada")
    write_weights(tmp_path, {**raw, key: raw[key].float()})
    with pytest.raises(InputError, match=rf"{key}.*float32.*dtype="):
        models.load(tmp_path)
    assert models.load(tmp_path, dtype="float32").embedding.dtype == torch.float32


def test_a_single_file_and_harmless_extras(tmp_path, family):
    raw = write_checkpoint(tmp_path, family)
    for file in tmp_path.glob("model*"):
        file.unlink()
    extra = {"model.rotary_emb.inv_freq": torch.ones(4)}
    write_weights(tmp_path, {**raw, **extra}, shards=1)
    (tmp_path / "model-00001-of-00001.safetensors").rename(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors.index.json").unlink()
    assert models.load(tmp_path).name == tmp_path.name


@pytest.mark.parametrize("jinja", [False, True])
def test_tokenizer(tmp_path, family, jinja):
    write_checkpoint(tmp_path, family)
    write_tokenizer(tmp_path, family, jinja=jinja)
    model = models.load(tmp_path)
    ids = model.tokenizer("héllo\n", add_special_tokens=False)["input_ids"]
    assert model.tokenizer.decode(ids) == "héllo\n"
    assert model.special.eot == 261
    assert model.special.ends == (257, 261)
    messages = [{"role": "user", "content": "hi"}]
    text = model.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == "[user]hi[assistant]"


def test_llada2_defaults(tmp_path):
    config = {
        k: v for k, v in LLADA2.items() if k not in ("eos_token_id", "mask_token_id", "block_size")
    }
    large = {**config, "vocab_size": 157184, "hidden_size": 2, "num_hidden_layers": 1}
    model = models.build(large, seed=0)
    assert model.special[:2] == (156895, 156892)
    assert model.block_size == 32
    assert models.build({**LLADA2, "block_size": None, "block_length": 16}, 0).block_size == 16
    with pytest.raises(InputError, match=r"mask_token_id is 156895 \(the default.*\[0, 288\)"):
        models.build(config, seed=0)


def test_model_type_alone_is_enough(tmp_path, family):
    write_checkpoint(tmp_path, family, architectures=None)
    assert models.load(tmp_path).model_type == CONFIGS[family]["model_type"]


@pytest.mark.parametrize("name", ["/no/such/directory", "./missing", "word"])
def test_a_directory_that_does_not_exist(name):
    with pytest.raises(InputError, match=rf"(no directory|unknown model) '{name}'"):
        models.load(name)


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="is a file"):
        models.load(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "bf16"}, "unknown dtype 'bf16'.*bfloat16"),
        ({"dtype": torch.int8}, "dtype is torch.int8"),
        ({"device": "cuda:99"}, "device 'cuda:99' cannot be used"),
        ({"device": "gpu"}, "device 'gpu' cannot be used"),
    ],
)
def test_bad_options(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        models.load(tmp_path, **options)


def test_a_failed_download_says_what_to_do(monkeypatch):
    def offline(*args, **kwargs):
        raise ConnectionError("no route to host\nlong story")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(InputError) as caught:
        models.load("GSAI-ML/LLaDA-8B-Instruct", revision="abc")
    text = str(caught.value)
    for part in (
        "GSAI-ML/LLaDA-8B-Instruct",
        "'abc'",
        "no route to host",
        "--local-dir",
        "directory",
    ):
        assert part in text
    assert "long story" not in text


def test_the_hub_is_asked_for_data_only_and_small_files_first(tmp_path, monkeypatch):
    write_checkpoint(tmp_path, "llada")
    asked = []

    def download(name, revision, allow_patterns):
        asked.append((name, revision, allow_patterns))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert models.load("owner/name", revision="v1").name == "owner/name"
    assert asked == [("owner/name", "v1", source.SMALL), ("owner/name", "v1", source.WEIGHTS)]
    assert not any("*.py" in patterns or "*" in patterns for _, _, patterns in asked)

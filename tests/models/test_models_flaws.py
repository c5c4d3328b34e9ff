"""What can be wrong with a checkpoint: each flaw is named before anything is computed."""

import json

import pytest
import torch
from builders import (
    write_checkpoint,
    write_weights,
)

import xpredflow.models as models
from xpredflow.errors import InputError

# Each flaw: what to do to a good checkpoint of which family, and what the error must say.


def rewrite(change):
    def flaw(directory, raw):
        write_weights(directory, change(raw))

    return flaw


def config(**changes):
    def flaw(directory, raw):
        file = directory / "config.json"
        merged = {**json.loads(file.read_text()), **changes}
        file.write_text(json.dumps({k: v for k, v in merged.items() if v != "ABSENT"}))

    return flaw


def shard(directory):
    return directory / "model-00002-of-00003.safetensors"


def truncate(directory, raw):
    shard(directory).write_bytes(shard(directory).read_bytes()[:-10])


def cut_in_header(directory, raw):
    shard(directory).write_bytes(shard(directory).read_bytes()[:40])


def garbage(directory, raw):
    data = bytearray(shard(directory).read_bytes())
    data[8:12] = b"\xff\xfe{{"
    shard(directory).write_bytes(bytes(data))


def empty(directory, raw):
    shard(directory).write_bytes(b"")


def quantised(directory, raw):
    key = sorted(raw)[0]
    write_weights(directory, {**raw, key: raw[key].to(torch.int8)})


def pickle_only(directory, raw):
    for file in directory.glob("model*"):
        file.unlink()
    (directory / "pytorch_model.bin").write_bytes(b"never read")


def no_weights(directory, raw):
    for file in directory.glob("model*"):
        file.unlink()


def bad_index(directory, raw):
    (directory / "model.safetensors.index.json").write_text('{"weight_map": [1]}')


def twice(directory, raw):
    (directory / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}})
    )
    for name in "ab":
        shard(directory).with_name(f"{name}.safetensors").write_bytes(shard(directory).read_bytes())


Q = "model.transformer.blocks.0.q_proj.weight"
EXPERT = "model.layers.1.mlp.experts.5.up_proj.weight"

FLAWS = {
    "missing": ("llada", rewrite(lambda r: {k: v for k, v in r.items() if k != Q}), f"lacks.*{Q}"),
    "missing expert": (
        "llada2",
        rewrite(lambda r: {k: v for k, v in r.items() if k != EXPERT}),
        f"lacks.*{EXPERT}",
    ),
    "unexpected": (
        "llada",
        rewrite(lambda r: {**r, "odd.weight": r[Q] + 0}),
        "odd.weight.*no place",
    ),
    "extra expert": (
        "llada2",
        rewrite(lambda r: {**r, EXPERT.replace(".5.", ".16."): r[EXPERT] + 0}),
        r"experts\.16\.up_proj",
    ),
    "shape": (
        "llada",
        rewrite(lambda r: {**r, Q: r[Q][:, :-1].contiguous()}),
        rf"{Q}.*\(32, 31\).*\(32, 32\)",
    ),
    "expert shape": (
        "llada2",
        rewrite(lambda r: {**r, EXPERT: r[EXPERT][:-1].contiguous()}),
        rf"{EXPERT}.*\(23, 32\).*\(24, 32\)",
    ),
    "truncated": ("llada", truncate, "00002-of-00003.*truncated.*header promises"),
    "cut in header": ("llada2", cut_in_header, "00002-of-00003.*truncated"),
    "garbage": ("llada", garbage, "00002-of-00003.*corrupt"),
    "empty": ("llada", empty, "00002-of-00003.*truncated"),
    "quantised": ("llada", quantised, "stored as I8"),
    "absent shard": ("llada", lambda d, r: shard(d).unlink(), "lists model-00002-of-00003"),
    "pickle": (
        "llada",
        pickle_only,
        "pytorch_model.bin.*never loaded.*convert them to safetensors",
    ),
    "no weights": ("llada", no_weights, "has no weights"),
    "bad index": ("llada", bad_index, "not a weight index"),
    "twice": ("llada", twice, "is in both a.safetensors and b.safetensors"),
    "architecture": (
        "llada",
        config(architectures=["GPT2LMHeadModel"], model_type="gpt2"),
        "GPT2LMHeadModel.*LLaDA2MoeModelLM, .*LLaDAModelLM",
    ),
    "llada-moe": (
        "llada",
        config(num_experts=8, hidden_size=32),
        "this LLaDA-MoE checkpoint has no field",
    ),
    "llada-moe by name": (
        "llada",
        config(architectures=["LLaDAMoEModelLM"]),
        "this LLaDA-MoE checkpoint has no field",
    ),
    "dream": (
        "llada",
        config(architectures=["DreamModel"], model_type="Dream"),
        "this Dream checkpoint has no field",
    ),
    "two models of one type": (
        "llada",
        config(architectures=None, model_type="Dream"),
        "names two models.*DreamModel.*DreamForCausalLM",
    ),
    "another kind": (
        "llada",
        config(architectures=["WeDLMForCausalLM"], model_type="wedlm"),
        "not supported: WeDLM is causal.*wrap",
    ),
    "no field": ("llada", config(mlp_hidden_size="ABSENT"), "no field 'mlp_hidden_size'"),
    "bad field": ("llada2", config(num_experts="many"), "num_experts is 'many'"),
    "bad real": ("llada", config(rope_theta=-1), "rope_theta is -1"),
    "heads": ("llada", config(n_heads=5), "n_heads is 5, which does not divide d_model = 32"),
    "mask id": ("llada", config(mask_token_id=126336), r"mask_token_id is 126336.*\[0, 288\)"),
    "eos id": ("llada2", config(eos_token_id="ABSENT"), "eos_token_id is 156892"),
    "norm type": ("llada", config(layer_norm_type="default"), "layer_norm_type is 'default'"),
    "activation": ("llada", config(activation_type="swiglu"), "activation_type is 'swiglu'"),
    "alibi": ("llada", config(alibi=True), "alibi is True"),
    "bias": ("llada", config(include_bias=True), "include_bias is True"),
    "qk norm": ("llada", config(attention_layer_norm=True), "attention_layer_norm is True"),
    "tied": ("llada", config(weight_tying=True), "weight_tying is True"),
    "block type": ("llada", config(block_type="sequential"), "block_type is 'sequential'"),
    "rope scaling": ("llada2", config(rope_scaling={"type": "yarn"}), "rope_scaling is"),
    "softmax router": ("llada2", config(score_function="softmax"), "score_function is 'softmax'"),
    "rotary": ("llada2", config(rotary_dim=16), "rotary_dim is 16"),
    "groups": ("llada2", config(n_group=16), "n_group is 16 for 16 experts"),
    "kept groups": ("llada2", config(topk_group=5), "topk_group is 5"),
    "chosen": ("llada2", config(num_experts_per_tok=9), "num_experts_per_tok is 9"),
    "not json": ("llada", lambda d, r: (d / "config.json").write_text("{"), "not valid JSON"),
    "not object": ("llada", lambda d, r: (d / "config.json").write_text("[]"), "holds a list"),
    "no config": ("llada", lambda d, r: (d / "config.json").unlink(), "has no config.json"),
    "tokenizer": ("llada", lambda d, r: (d / "tokenizer.json").write_text("{"), "tokenizer in"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_flaws_are_named(tmp_path, flaw):
    kind, spoil, message = FLAWS[flaw]
    raw = write_checkpoint(tmp_path, kind)
    spoil(tmp_path, raw)
    with pytest.raises(InputError, match=message):
        models.load(tmp_path)

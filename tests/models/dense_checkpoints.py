"""Small checkpoints of every published kind of the dense layout, written without our own code.

A kind is a config.json with the published names and flags; the sizes alone are ours.
"""

import json
from pathlib import Path
from typing import Any

import torch
from builders import VOCABULARY, write_weights
from safetensors.torch import save_file
from torch import Tensor

BLOCK = 8
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 128,
    "eos_token_id": 257,
    "mask_token_id": 258,
    "tie_word_embeddings": False,
    "auto_map": {"AutoModel": "modeling.Remote"},
}
QWEN3: dict[str, Any] = {"head_dim": 16, "attention_bias": False}
EXPERTS: dict[str, Any] = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 24}


def _kind(architecture: str, model_type: str, **fields: Any) -> dict[str, Any]:
    return {**SIZES, "architectures": [architecture], "model_type": model_type, **fields}


A2D3 = _kind("A2DQwen3LMHeadModel", "a2d-qwen3", **QWEN3, tie_word_embeddings=True)
A2D2 = _kind("A2DQwen2LMHeadModel", "a2d-qwen2", tie_word_embeddings=True)
BLOCKS = {"block_size": BLOCK}
# By the name of a checkpoint, as far as the name tells something.
KINDS: dict[str, dict[str, Any]] = {
    "Qwen3-0.6B-diffusion-mdlm-v0.1": A2D3,
    "Qwen3-0.6B-diffusion-bd3lm-v0.1": A2D3,
    "Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1": A2D2,
    "Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1": A2D2,
    "open-dcoder-0.5B": _kind("Qwen2ForCausalLM", "qwen2", tie_word_embeddings=True),
    "CoDA-v0-Instruct": _kind("CoDALanguageModel", "CoDA", **QWEN3),
    "Fast_dLLM_v2_1.5B": _kind("Fast_dLLM_QwenForCausalLM", "Fast_dLLM_Qwen", bd_size=BLOCK),
    "SDAR-1.7B-Chat": _kind("SDARForCausalLM", "sdar", **QWEN3, **BLOCKS),
    "Dream-v0-Instruct-7B": _kind("DreamModel", "Dream"),
    "DreamReasoner-8B": _kind("DreamForCausalLM", "Dream", **QWEN3, **BLOCKS),
    "iLLaDA-8B-Instruct": _kind("ILLaDAForCausalLM", "illada", tie_word_embeddings=True),
    "Stable-DiffCoder-8B": _kind("StableDiffcoderForCausalLM", "llama", **BLOCKS),
    "LLaDA-MoE-7B-A1B": {
        **_kind("LLaDAMoEModelLM", "llada", head_dim=8, num_experts=8, num_experts_per_tok=3),
        "expert_intermediate_size": 24,
        "intermediate_size": None,
        "num_key_value_heads": 4,
    },
    "RND1-Base-0910": _kind("RND1LM", "rnd1", **QWEN3, **EXPERTS, norm_topk_prob=True),
    "SDAR-30B-A3B-Chat": {
        **_kind("SDARMoeForCausalLM", "sdar_moe", **QWEN3, **EXPERTS, **BLOCKS),
        "norm_topk_prob": True,
    },
}
QK_NORM = ("A2DQwen3", "CoDA", "SDAR", "DreamForCausalLM", "LLaDAMoE", "RND1")
QKV_BIAS = ("A2DQwen2", "Qwen2", "Fast_dLLM", "DreamModel")
SHIFTED = ("open-dcoder-0.5B", "CoDA-v0-Instruct", "Fast_dLLM_v2_1.5B", "Dream-v0-Instruct-7B")
ANCHORED = [name for name in KINDS if "bd3lm" in name]
BLOCKED = [*ANCHORED, *(name for name, c in KINDS.items() if {"block_size", "bd_size"} & {*c})]


def shapes(c: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every tensor by its published name."""
    [architecture] = c["architectures"]
    e, rows = c["hidden_size"], c["vocab_size"]
    dim = c.get("head_dim") or e // c["num_attention_heads"]
    q, kv = c["num_attention_heads"] * dim, c["num_key_value_heads"] * dim
    found: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (rows, e),
        "model.norm.weight": (e,),
    }
    if not c["tie_word_embeddings"]:
        found["lm_head.weight"] = (rows, e)
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        found |= {f"{at}{norm}_layernorm.weight": (e,) for norm in ("input", "post_attention")}
        for name, out in (("q", q), ("k", kv), ("v", kv)):
            found[f"{at}self_attn.{name}_proj.weight"] = (out, e)
            if architecture.startswith(QKV_BIAS):
                found[f"{at}self_attn.{name}_proj.bias"] = (out,)
        found[f"{at}self_attn.o_proj.weight"] = (e, q)
        if architecture.startswith(QK_NORM):
            found |= {f"{at}self_attn.{name}_norm.weight": (dim,) for name in "qk"}
        found |= _mlp(c, f"{at}mlp.")
    return found


def _mlp(c: dict[str, Any], at: str) -> dict[str, tuple[int, ...]]:
    e = c["hidden_size"]
    parts, inner = {at: ""}, c["intermediate_size"]
    found: dict[str, tuple[int, ...]] = {}
    if "num_experts" in c:
        found[at + "gate.weight"] = (c["num_experts"], e)
        inner = c.get("moe_intermediate_size") or c["expert_intermediate_size"]
        parts = {f"{at}experts.{expert}.": "" for expert in range(c["num_experts"])}
    for part in parts:
        found |= {f"{part}{name}_proj.weight": (inner, e) for name in ("gate", "up")}
        found[f"{part}down_proj.weight"] = (e, inner)
    return found


def values(config: dict[str, Any], dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Values that make a lively model."""
    generator = torch.Generator().manual_seed(11)

    def draw(name: str, shape: tuple[int, ...]) -> Tensor:
        noise = torch.randn(shape, generator=generator)
        if name.endswith("bias"):
            return 0.3 * noise
        return 1.0 + 0.2 * noise if len(shape) == 1 else noise * (2.0 / shape[-1]) ** 0.5

    return {name: draw(name, shape).to(dtype) for name, shape in shapes(config).items()}


def write_kind(parent: Path, name: str, extra: Any = None, **changes: Any) -> Path:
    """A checkpoint of one kind in a directory of its published name."""
    config = {**KINDS[name], **changes}
    config = {field: value for field, value in config.items() if value != "ABSENT"}
    directory = parent / name
    tensors = values(config) | (extra or {})
    if sum(t.nbytes for t in tensors.values()) > 150_000:
        write_weights(directory, tensors)
    else:
        directory.mkdir(parents=True, exist_ok=True)
        save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    (directory / "config.json").write_text(json.dumps(config))
    return directory

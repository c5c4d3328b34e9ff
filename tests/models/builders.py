"""Small checkpoints in the published layouts, written without any of our own saving code."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from torch import Tensor

VOCABULARY = 288

LLADA = {
    "architectures": ["LLaDAModelLM"],
    "auto_map": {"AutoModelForCausalLM": "modeling_llada.LLaDAModelLM"},
    "model_type": "llada",
    "block_type": "llama",
    "activation_type": "silu",
    "d_model": 32,
    "n_heads": 4,
    "n_kv_heads": 4,
    "n_layers": 2,
    "mlp_hidden_size": 48,
    "mlp_ratio": 4,
    "layer_norm_type": "rms",
    "rms_norm_eps": 1e-5,
    "rope": True,
    "rope_theta": 500000.0,
    "rope_full_precision": True,
    "max_sequence_length": 128,
    "vocab_size": VOCABULARY,
    "embedding_size": VOCABULARY,
    "mask_token_id": 258,
    "eos_token_id": 257,
    "pad_token_id": 257,
    "multi_query_attention": None,
    "weight_tying": False,
    "include_bias": False,
    "include_qkv_bias": False,
    "attention_layer_norm": False,
    "torch_dtype": "bfloat16",
}

LLADA2 = {
    "architectures": ["LLaDA2MoeModelLM"],
    "model_type": "llada2_moe",
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 48,
    "first_k_dense_replace": 1,
    "num_experts": 16,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 24,
    "num_shared_experts": 1,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 2.5,
    "score_function": "sigmoid",
    "norm_topk_prob": True,
    "moe_router_enable_expert_bias": True,
    "router_dtype": "fp32",
    "rope_theta": 600000,
    "rope_scaling": None,
    "partial_rotary_factor": 0.5,
    "rotary_dim": 8,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 256,
    "block_size": 8,
    "eos_token_id": 257,
    "mask_token_id": 258,
    "pad_token_id": 257,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "tie_word_embeddings": False,
}

CONFIGS: dict[str, dict[str, Any]] = {"llada": LLADA, "llada2": LLADA2}
SPECIALS = {
    "llada": [
        "<|startoftext|>",
        "<|endoftext|>",
        "<|mdm_mask|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
    ],
    "llada2": ["<|startoftext|>", "<|endoftext|>", "<|mask|>", "<role>", "</role>", "<|role_end|>"],
}
TEMPLATE = (
    "{% for m in messages %}{{ '[' + m['role'] + ']' + m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def weights(family: str, config: dict[str, Any], dtype: torch.dtype) -> dict[str, Tensor]:
    """Every tensor of a checkpoint by its published name, with values that make a lively model."""
    generator = torch.Generator().manual_seed(7)
    shapes = llada_shapes(config) if family == "llada" else llada2_shapes(config)

    def values(name: str, shape: tuple[int, ...]) -> Tensor:
        noise = torch.randn(shape, generator=generator)
        if name.endswith("expert_bias"):
            return 0.3 * noise  # large enough to change who is chosen
        return 1.0 + 0.2 * noise if len(shape) == 1 else noise * (2.0 / shape[-1]) ** 0.5

    return {name: values(name, shape).to(dtype) for name, shape in shapes.items()}


def llada_shapes(c: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    d, m, rows = c["d_model"], c["mlp_hidden_size"], c["embedding_size"]
    kv = d // c["n_heads"] * c["n_kv_heads"]
    root = "model.transformer."
    shapes: dict[str, tuple[int, ...]] = {
        root + "wte.weight": (rows, d),
        root + "ff_out.weight": (rows, d),
        root + "ln_f.weight": (d,),
    }
    per_block: dict[str, tuple[int, ...]] = {
        "attn_norm": (d,),
        "ff_norm": (d,),
        "q_proj": (d, d),
        "k_proj": (kv, d),
        "v_proj": (kv, d),
        "attn_out": (d, d),
        "ff_proj": (m, d),
        "up_proj": (m, d),
        "ff_out": (d, m),
    }
    for i in range(c["n_layers"]):
        shapes |= {f"{root}blocks.{i}.{name}.weight": s for name, s in per_block.items()}
    return shapes


def llada2_shapes(c: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    e, rows, d = c["hidden_size"], c["vocab_size"], c["head_dim"]
    heads, groups = c["num_attention_heads"], c["num_key_value_heads"]
    shapes: dict[str, tuple[int, ...]] = {
        "model.word_embeddings.weight": (rows, e),
        "lm_head.weight": (rows, e),
        "model.norm.weight": (e,),
    }
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        shapes |= {
            layer + "input_layernorm.weight": (e,),
            layer + "post_attention_layernorm.weight": (e,),
            layer + "attention.query_key_value.weight": ((heads + 2 * groups) * d, e),
            layer + "attention.query_layernorm.weight": (d,),
            layer + "attention.key_layernorm.weight": (d,),
            layer + "attention.dense.weight": (e, heads * d),
        }
        shapes |= _mlp_shapes(c, layer + "mlp.", dense=i < c["first_k_dense_replace"])
    return shapes


def _mlp_shapes(c: dict[str, Any], mlp: str, *, dense: bool) -> dict[str, tuple[int, ...]]:
    e, inner = c["hidden_size"], c["moe_intermediate_size"]
    if dense:
        return _gated(mlp, e, c["intermediate_size"])
    shapes: dict[str, tuple[int, ...]] = {
        mlp + "gate.weight": (c["num_experts"], e),
        mlp + "gate.expert_bias": (c["num_experts"],),
    }
    for expert in range(c["num_experts"]):
        shapes |= _gated(f"{mlp}experts.{expert}.", e, inner)
    return shapes | _gated(mlp + "shared_experts.", e, inner * c["num_shared_experts"])


def _gated(prefix: str, width: int, inner: int) -> dict[str, tuple[int, ...]]:
    return {
        prefix + "gate_proj.weight": (inner, width),
        prefix + "up_proj.weight": (inner, width),
        prefix + "down_proj.weight": (width, inner),
    }


def write_checkpoint(
    directory: Path,
    family: str,
    *,
    dtype: torch.dtype = torch.float32,
    tokenizer: bool = False,
    **changes: Any,
) -> dict[str, Tensor]:
    """A whole checkpoint in three shards, split by tensor name as published ones are."""
    config = {**CONFIGS[family], **changes}
    tensors = weights(family, config, dtype)
    write_weights(directory, tensors)
    (directory / "config.json").write_text(json.dumps(config))
    if tokenizer:
        write_tokenizer(directory, family)
    return tensors


def write_weights(directory: Path, tensors: dict[str, Tensor], shards: int = 3) -> None:
    """The tensors as shards with an index."""
    directory.mkdir(parents=True, exist_ok=True)
    names, weight_map = sorted(tensors), {}
    for i in range(shards):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: tensors[name] for name in names[i::shards]}
        save_file(part, directory / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))


def write_tokenizer(directory: Path, family: str, *, jinja: bool = False) -> None:
    """A byte-level tokenizer whose tokenizer_config.json names a class that nobody has."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    tokenizer.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    tokenizer.add_special_tokens(SPECIALS[family])
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {
        "tokenizer_class": "BailingMoeTokenizerFast",
        "auto_map": {"AutoTokenizer": ["tokenization.Bailing", None]},
        "eos_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
    }
    if jinja:
        (directory / "chat_template.jinja").write_text(TEMPLATE)
    else:
        settings["chat_template"] = TEMPLATE
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))

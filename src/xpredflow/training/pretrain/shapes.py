"""config.json of the embedded models: the published layouts at a size that two cores can train."""

from typing import Any


def tiny(vocabulary: int, mask: int, eos: int) -> dict[str, Any]:
    """LLaDA's dense layout."""
    return {
        "architectures": ["LLaDAModelLM"],
        "model_type": "llada",
        "d_model": 128,
        "n_heads": 4,
        "n_kv_heads": 4,
        "n_layers": 6,
        "mlp_hidden_size": 384,
        "block_type": "llama",
        "activation_type": "silu",
        "layer_norm_type": "rms",
        "rms_norm_eps": 1e-5,
        "rope": True,
        "rope_theta": 10000.0,
        "rope_full_precision": True,
        "max_sequence_length": 1024,
        "vocab_size": vocabulary,
        "embedding_size": vocabulary,
        "mask_token_id": mask,
        "eos_token_id": eos,
        "pad_token_id": eos,
        "weight_tying": False,
        "include_bias": False,
        "include_qkv_bias": False,
        "attention_layer_norm": False,
    }


def tiny_moe(vocabulary: int, mask: int, eos: int) -> dict[str, Any]:
    """LLaDA2's layout: block-causal, one dense layer, then routed experts and a shared one."""
    return {
        "architectures": ["LLaDA2MoeModelLM"],
        "model_type": "llada2_moe",
        "hidden_size": 128,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "intermediate_size": 384,
        "first_k_dense_replace": 1,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "num_shared_experts": 1,
        "n_group": 4,
        "topk_group": 2,
        "routed_scaling_factor": 1.0,
        "score_function": "sigmoid",
        "norm_topk_prob": True,
        "moe_router_enable_expert_bias": True,
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "rms_norm_eps": 1e-6,
        "vocab_size": vocabulary,
        "max_position_embeddings": 1024,
        "mask_token_id": mask,
        "eos_token_id": eos,
        "pad_token_id": eos,
        "use_qk_norm": True,
        "use_bias": False,
        "use_qkv_bias": False,
        "tie_word_embeddings": False,
    }


SHAPES = {"tiny": tiny, "tiny-moe": tiny_moe}

"""The published shapes, without memory behind them: as many tensors and parameters as published."""

from typing import Any

import pytest

from xpredflow.models.base import on_meta
from xpredflow.models.families import family_of

QWEN: dict[str, Any] = {
    "vocab_size": 151936,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "max_position_embeddings": 32768,
    "eos_token_id": 151645,
    "tie_word_embeddings": False,
}


def shape(layers: int, width: int, heads: int, groups: int, inner: int, **more: Any) -> dict:
    return {
        **QWEN,
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "intermediate_size": inner,
        **more,
    }


LLADA2: dict[str, Any] = {
    "architectures": ["LLaDA2MoeModelLM"],
    "model_type": "llada2_moe",
    "head_dim": 128,
    "first_k_dense_replace": 1,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "num_shared_experts": 1,
    "n_group": 8,
    "topk_group": 4,
    "routed_scaling_factor": 2.5,
    "rope_theta": 600000,
    "vocab_size": 157184,
    "eos_token_id": None,
}
# config.json, tensors in the files, parameters; None where no figure is published
PUBLISHED: dict[str, tuple[dict, int | None, int]] = {
    "Qwen3-0.6B mdlm": (
        shape(28, 1024, 16, 8, 3072, head_dim=128, tie_word_embeddings=True)
        | {"architectures": ["A2DQwen3LMHeadModel"], "masked_diffusion": {"block": 0}},
        None,
        596_049_920,
    ),
    "SDAR-4B": (
        shape(36, 2560, 32, 8, 9728, head_dim=128)
        | {"architectures": ["SDARForCausalLM"], "block_size": 4},
        399,
        8_822_848_512 // 2,
    ),
    "SDAR-8B": (
        shape(36, 4096, 32, 8, 12288, head_dim=128)
        | {"architectures": ["SDARForCausalLM"], "block_size": 4},
        399,
        16_381_470_720 // 2,
    ),
    "Dream-7B": (
        shape(28, 3584, 28, 4, 18944, vocab_size=152064) | {"architectures": ["DreamModel"]},
        339,
        7_615_616_512,
    ),
    "LLaDA2.0-mini": (
        shape(20, 2048, 16, 4, 5120) | LLADA2 | {"moe_intermediate_size": 512},
        14_813,
        16_255_643_392,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_as_published(name):
    config, tensors, parameters = PUBLISHED[name]
    model = on_meta(family_of(config), config)
    assert sum(tensor.numel() for tensor in model.state_dict().values()) == parameters
    if tensors is not None:
        assert len(model.places()) == tensors


def test_the_larger_kin_have_the_layout_of_the_smaller():
    flash = shape(32, 4096, 32, 4, 9216) | LLADA2 | {"moe_intermediate_size": 1024}
    model = on_meta(family_of(flash), flash)
    total = sum(tensor.numel() for tensor in model.state_dict().values())
    assert round(total / 1e9) == 103
    assert (model.special.mask, model.special.eos, model.block_size) == (156895, 156892, 32)
    rnd1 = shape(48, 2048, 32, 4, 6144, head_dim=128) | {
        "architectures": ["RND1LM"],
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "norm_topk_prob": True,
    }
    model = on_meta(family_of(rnd1), rnd1)
    assert round(sum(t.numel() for t in model.state_dict().values()) / 1e9, 1) == 30.5
    assert model.special.mask == 151669


def test_illada_is_tied_and_has_its_published_size():
    config = shape(32, 4096, 32, 8, 14336, vocab_size=155136, eos_token_id=2) | {
        "architectures": ["ILLaDAForCausalLM"],
        "tie_word_embeddings": True,
    }
    model = on_meta(family_of(config), config)
    assert round(sum(t.numel() for t in model.state_dict().values()) / 1e9, 2) == 7.62
    assert len(model.places()) + len(model.copies()) == 291
    assert model.special.mask == 5

"""The published checkpoints of the dense layout, and what their config.json leaves unsaid.

What config.json says wins over this table. None is never guessed: it is read from the files or the
checkpoint's name, else the user is asked for it (`load(..., mask=...)`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from xpredflow.errors import InputError

OWN = "masked_diffusion"  # our object in config.json: shift, block, anchor, max_length
QWEN_ENDS = ("<|im_end|>", "<|endoftext|>")
_SDAR_NAMES = (
    (r"-b(?P<block>\d+)$", {}),
    (r"(SDAR|TraDo)-[\d.]+B(-A\d+B)?-(Chat|Instruct|Thinking)(-Sci)?$", {"block": 4}),
)
_A2D_NAMES = ((r"bd3lm", {"block": 32, "anchor": "response"}), (r"mdlm", {"block": 0}))


@dataclass(frozen=True)
class Variant:
    """One kind of published checkpoint.

    `shift` 1: the logits at a position predict the next one. `block` 0: every position sees every
    other; else the attention is causal over blocks of so many positions, counted from the `anchor`.
    `names` are patterns of checkpoints' names and what they tell.
    """

    family: str
    about: str
    mask: int | None = None
    eos: int | None = None
    shift: int | None = 0
    block: int | None = 0
    anchor: str = "start"
    tied: bool = False
    qk_norm: bool = False
    qkv_bias: bool = False  # of q, k and v alone; elsewhere `attention_bias` decides, for o as well
    experts: bool = False
    context: int | None = None  # what it was trained on, where config.json promises more
    ends: tuple[str, ...] = QWEN_ENDS  # tokens that end a turn or a text
    chat_options: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    def named(self, name: str) -> dict[str, Any]:
        """What the name of a checkpoint tells about it."""
        for pattern, told in self.names:
            if found := re.search(pattern, name, re.IGNORECASE):
                return {**told, **{key: int(text) for key, text in found.groupdict().items()}}
        return {}


_A2D_QWEN3 = Variant(
    "A2D-Qwen3",
    "dllm's diffusion models of Qwen3: mdlm, bd3lm.",
    mask=151669,
    block=None,
    qk_norm=True,
    chat_options={"enable_thinking": False},
    names=_A2D_NAMES,
)
_STABLE_DIFFCODER = Variant(
    "Stable-DiffCoder", "Stable-DiffCoder-8B: Llama layers, block-causal.", block=4
)
_LLADA_MOE = Variant(
    "LLaDA-MoE",
    "LLaDA-MoE-7B-A1B: experts, bidirectional.",
    mask=156895,
    eos=156892,
    qk_norm=True,
    experts=True,
    ends=("<|role_end|>", "<|endoftext|>"),
)
_AUTOREGRESSIVE: dict[str, Any] = {"shift": None, "block": None}

# By an entry of config.json's `architectures`.
VARIANTS: dict[str, Variant] = {
    "A2DQwen3LMHeadModel": _A2D_QWEN3,
    "A2DQwen2LMHeadModel": Variant(
        "A2D-Qwen2",
        "dllm's diffusion models of Qwen2.5: mdlm, bd3lm.",
        block=None,
        qkv_bias=True,
        names=_A2D_NAMES,
    ),
    "A2DLlamaLMHeadModel": Variant(
        "A2D-Llama", "dllm's diffusion models of Llama.", block=None, names=_A2D_NAMES
    ),
    "CoDALanguageModel": Variant(
        "CoDA", "CoDA-1.7B: Qwen3 layers, shifted logits.", mask=151669, shift=1, qk_norm=True
    ),
    "Fast_dLLM_QwenForCausalLM": Variant(
        "Fast-dLLM-v2",
        "Fast-dLLM v2: Qwen2.5 layers, block-causal, shifted logits.",
        mask=151665,
        shift=1,
        block=32,
        qkv_bias=True,
    ),
    "SDARForCausalLM": Variant(
        "SDAR",
        "SDAR and TraDo: Qwen3 layers, block-causal.",
        mask=151669,
        block=None,
        qk_norm=True,
        names=_SDAR_NAMES,
    ),
    "SDARMoeForCausalLM": Variant(
        "SDAR-MoE",
        "SDAR-30B-A3B: experts, block-causal.",
        mask=151669,
        block=None,
        qk_norm=True,
        experts=True,
        names=_SDAR_NAMES,
    ),
    "DreamModel": Variant(
        "Dream",
        "Dream-7B, Dream-Coder, DiffuCoder: Qwen2.5 layers, shifted logits.",
        mask=151666,
        shift=1,
        qkv_bias=True,
        context=2048,
    ),
    "DreamForCausalLM": Variant(
        "DreamReasoner",
        "DreamReasoner-8B: Qwen3 layers, block-causal.",
        mask=151669,
        block=32,
        qk_norm=True,
    ),
    "ILLaDAForCausalLM": Variant(
        "iLLaDA", "iLLaDA-8B: Llama layers, bidirectional, tied head.", mask=5, tied=True
    ),
    "StableDiffcoderForCausalLM": _STABLE_DIFFCODER,
    "LLaDAMoEModelLM": _LLADA_MOE,
    "LLaDAMoEModel": _LLADA_MOE,
    "RND1LM": Variant(
        "RND1", "RND1-30B-A3B: experts, bidirectional.", mask=151669, qk_norm=True, experts=True
    ),
    # Names of autoregressive models, which some masked diffusion models kept.
    "Qwen2ForCausalLM": Variant(
        "Qwen2",
        "Qwen2 layers, if there is a mask token: Open-dCoder-0.5B.",
        qkv_bias=True,
        **_AUTOREGRESSIVE,
        names=((r"open-?dcoder", {"shift": 1, "block": 0}),),
    ),
    "Qwen3ForCausalLM": Variant(
        "Qwen3", "Qwen3 layers, if there is a mask token.", qk_norm=True, **_AUTOREGRESSIVE
    ),
    "LlamaForCausalLM": Variant(
        "Llama", "Llama layers, if there is a mask token.", **_AUTOREGRESSIVE
    ),
    "Qwen3MoeForCausalLM": Variant(
        "Qwen3-MoE",
        "Qwen3-MoE layers, if there is a mask token.",
        qk_norm=True,
        experts=True,
        **_AUTOREGRESSIVE,
    ),
}
_LLADA_NAMES = {"LLaDAModelLM", "LLaDAMoEModelLM", "LLaDAMoEModel"}
# For a config.json without `architectures`; "Dream" names two models and is not among them.
MODEL_TYPES = {
    "a2d-qwen3": "A2DQwen3LMHeadModel",
    "a2d-qwen2": "A2DQwen2LMHeadModel",
    "a2d-llama": "A2DLlamaLMHeadModel",
    "CoDA": "CoDALanguageModel",
    "Fast_dLLM_Qwen": "Fast_dLLM_QwenForCausalLM",
    "sdar": "SDARForCausalLM",
    "sdar_moe": "SDARMoeForCausalLM",
    "lladamoe": "LLaDAMoEModelLM",
    "rnd1": "RND1LM",
}


def architecture_of(config: Mapping[str, Any]) -> str | None:
    """The table's name for what config.json describes; None if it is nothing of the table."""
    architectures = config.get("architectures") or []
    remote = [str(value) for value in (config.get("auto_map") or {}).values()]
    named = [*architectures, *remote]
    # StableDiffcoder now, SeedDiffcoder in its first copies, which call themselves Llama
    if any("diffcoder" in name.lower() for name in named):
        return "StableDiffcoderForCausalLM"
    # LLaDA-MoE shares its model_type with the dense LLaDA; only its fields tell it apart.
    if config.get("model_type") == "llada" and config.get("num_experts"):
        return "LLaDAMoEModelLM" if {*architectures} <= _LLADA_NAMES else None
    found = next((name for name in architectures if name in VARIANTS), None)
    if found is None and not architectures:
        if config.get("model_type") == "Dream":
            raise InputError(
                "config.json has model_type = 'Dream' and no architectures: that names two models."
                ' Write "architectures": ["DreamModel"] for Dream-7B, Dream-Coder and DiffuCoder,'
                ' or ["DreamForCausalLM"] for DreamReasoner'
            )
        return MODEL_TYPES.get(str(config.get("model_type")))
    return found

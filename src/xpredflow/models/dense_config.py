"""config.json of the dense layout as flags and numbers; every complaint names the field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xpredflow.errors import InputError
from xpredflow.models.attention import Shape
from xpredflow.models.config import REQUIRED, Fields
from xpredflow.models.softmax_experts import SoftmaxRouting
from xpredflow.models.variants import OWN, VARIANTS, Variant, architecture_of
from xpredflow.types import SpecialTokens

BLOCK_FIELDS = ("block_size", "block_length", "bd_size")  # as they are called upstream


@dataclass(frozen=True)
class DenseConfig:
    """All that the layers need to know. `tied`: the head is the embedding table."""

    variant: Variant
    shape: Shape
    rows: int
    width: int
    inner: int  # of an MLP; unused where every layer has experts
    eps: float
    tied: bool
    qk_norm: bool
    qkv_bias: bool
    out_bias: bool
    experts: SoftmaxRouting | None


def read_dense(config: dict[str, Any]) -> DenseConfig:
    """What config.json and the table of variants say together."""
    architecture = architecture_of(config)
    if architecture is None:
        raise InputError(
            f"config.json has architectures = {config.get('architectures')!r}, which names no dense"
            f" layout. Known: {', '.join(VARIANTS)}"
        )
    variant = VARIANTS[architecture]
    fields = Fields(config, variant.family)
    _reject_variants(fields)
    any_bias = fields.flag("attention_bias", False)
    experts = _experts(fields) if variant.experts else None
    everywhere = experts is not None and experts.every == 1 and not experts.dense_layers
    return DenseConfig(
        variant=variant,
        shape=_shape(fields, variant, architecture),
        rows=fields.whole("vocab_size"),
        width=fields.whole("hidden_size"),
        inner=fields.whole("intermediate_size", 1 if everywhere else REQUIRED),
        eps=fields.real("rms_norm_eps"),
        tied=fields.flag("tie_word_embeddings", variant.tied),
        qk_norm=variant.qk_norm,
        qkv_bias=variant.qkv_bias or any_bias,
        out_bias=any_bias and not variant.qkv_bias,
        experts=experts,
    )


def _shape(fields: Fields, variant: Variant, architecture: str) -> Shape:
    said: Mapping[str, Any] = fields.config.get(OWN) or {}
    heads = fields.whole("num_attention_heads")
    head_dim = fields.whole("head_dim", fields.whole("hidden_size") // heads)
    special = _special(fields, variant, architecture)
    shift = _stated("shift", said.get("shift", variant.shift), architecture)
    block = _stated("block", said.get("block", _block(fields, variant)), architecture)
    anchor = said.get("anchor", variant.anchor)
    if anchor == "response" and shift:
        raise InputError(
            "anchor is 'response' and shift 1: no checkpoint has both, and they are not implemented"
            " together; leave one of them out"
        )
    stated = fields.whole("max_position_embeddings")
    return Shape(
        special=special,
        max_length=said.get("max_length") or min(stated, variant.context or stated),
        layers=fields.whole("num_hidden_layers"),
        heads=heads,
        kv_heads=fields.divides("num_attention_heads", "num_key_value_heads", heads),
        head_dim=head_dim,
        rotary_dim=head_dim,
        rope_theta=_theta(fields),
        block_size=block or None,
        shift=shift,
        anchor=anchor if block else "start",
    )


def _special(fields: Fields, variant: Variant, architecture: str) -> SpecialTokens:
    rows = fields.whole("vocab_size")
    mask = fields.config.get("mask_token_id")
    mask = _stated("mask", variant.mask if mask is None else mask, architecture)
    ends = fields.tokens("eos_token_id", REQUIRED if variant.eos is None else variant.eos, rows)
    special = SpecialTokens(
        mask=fields.token("mask_token_id", mask, rows),
        eos=ends[0],
        eot=ends[1] if len(ends) > 1 else None,
    )
    if special.mask in special.ends:
        raise InputError(
            f"config.json: mask_token_id and eos_token_id are both {special.mask}; the mask has a"
            " token of its own: pass mask=ID"
        )
    return special


def _block(fields: Fields, variant: Variant) -> int | None:
    """What config.json says of blocks; a model that sees both ways has none to state."""
    if variant.block == 0:
        return 0
    name = fields.present(*BLOCK_FIELDS)
    return variant.block if fields.config.get(name) is None else fields.whole(name)


_ASKED = {
    "mask": "mask=ID or mask='TOKEN', the token that stands for what is not yet decoded",
    "shift": "shift=1 if the logits at a position predict the next one (Open-dCoder), else shift=0",
    "block": "block=32 for attention in blocks of 32 (bd3lm), block=0 for full attention (mdlm)",
}


def _stated(what: str, value: Any, architecture: str) -> int:
    """A fact that must have been stated somewhere; it is never guessed."""
    if value is not None:
        return value
    plain = VARIANTS[architecture].shift is None
    why = (
        " The name is that of an autoregressive model, which cannot decode this way; if this is a"
        " masked diffusion model,"
        if plain
        else ""
    )
    raise InputError(
        f"{what} is unknown: neither config.json, the tokenizer nor the name of this {architecture}"
        f" checkpoint tells it, and it is never guessed.{why or ' Please'} pass {_ASKED[what]}; on"
        f" the command line, --model 'NAME+{_ASKED[what].split()[0]}'"
    )


def _theta(fields: Fields) -> float:
    """transformers 5 writes `rope_parameters`, earlier versions `rope_theta` and `rope_scaling`."""
    rope = fields.config.get("rope_parameters") or fields.config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default" or rope.get("factor", 1.0) != 1.0:
        raise InputError(
            f"config.json: rope_scaling is {rope!r}, but the {fields.family} family is implemented"
            " for unscaled rotary embeddings only"
        )
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise InputError(
            f"config.json: partial_rotary_factor is {rope['partial_rotary_factor']!r}, but the"
            f" {fields.family} family rotates whole heads"
        )
    if rope.get("rope_theta") is not None:
        return Fields(rope, fields.family).real("rope_theta")
    return fields.real("rope_theta")


def _experts(fields: Fields) -> SoftmaxRouting:
    routing = SoftmaxRouting(
        experts=fields.whole(fields.present("num_experts", "num_local_experts")),
        chosen=fields.whole("num_experts_per_tok"),
        inner=fields.whole(fields.present("moe_intermediate_size", "expert_intermediate_size")),
        normalise=fields.flag("norm_topk_prob", False),
        every=fields.whole("decoder_sparse_step", 1),
        dense_layers=tuple(fields.config.get("mlp_only_layers") or ()),
    )
    if routing.chosen > routing.experts:
        raise InputError(
            f"config.json: num_experts_per_tok is {routing.chosen}; expected at most num_experts ="
            f" {routing.experts}"
        )
    return routing


def _reject_variants(fields: Fields) -> None:
    fields.only(
        hidden_act="silu",
        mlp_bias=False,
        use_sliding_window=False,
        layer_norm_eps=None,  # iLLaDA's code has a LayerNorm for it, its checkpoints do not
        partial_rotary_factor=1.0,
    )
    kinds = {*(fields.config.get("layer_types") or [])} - {"full_attention"}
    if kinds:
        raise InputError(
            f"config.json: layer_types has {sorted(kinds)}, but the {fields.family} family is"
            " implemented for 'full_attention' only"
        )

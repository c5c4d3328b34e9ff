"""LLaDA2 (mini, flash): mixture of experts with block-causal attention and an exact cache."""

from collections.abc import Iterable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.errors import InputError
from xpredflow.models.attention import Pass, Shape
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.config import Fields
from xpredflow.models.experts import MixtureMLP, Routing
from xpredflow.models.layers import GatedMLP, RMSNorm
from xpredflow.models.split import Cut
from xpredflow.registry import FAMILIES
from xpredflow.types import SpecialTokens

EOS, MASK = 156892, 156895  # published config.json files leave these out
BLOCK_SIZE = 32


class Attention(nn.Module):
    """Fused projection (rows Q, then K, then V), norm of each query and key head, grouped heads."""

    def __init__(self, width: int, shape: Shape, eps: float) -> None:
        super().__init__()
        heads, groups, head_dim = shape.heads, shape.kv_heads, shape.head_dim
        self.query_key_value = nn.Linear(width, (heads + 2 * groups) * head_dim, bias=False)
        self.query_layernorm = RMSNorm(head_dim, eps)
        self.key_layernorm = RMSNorm(head_dim, eps)
        self.dense = nn.Linear(heads * head_dim, width, bias=False)
        self.split = (heads, groups, groups)
        self.head_dim = head_dim

    def forward(
        self, x: Float[Tensor, "B L E"], shared: Pass, index: int
    ) -> Float[Tensor, "B L E"]:
        fused = self.query_key_value(x).unflatten(-1, (-1, self.head_dim))
        q, k, v = fused.split(self.split, dim=2)
        q, k = self.query_layernorm(q), self.key_layernorm(k)
        return self.dense(shared.attend(index, q, k, v))


class Layer(nn.Module):
    """Pre-norm attention, then an MLP: dense in the first layers, experts in the others."""

    def __init__(self, width: int, shape: Shape, eps: float, mlp: nn.Module) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(width, eps)
        self.attention = Attention(width, shape, eps)
        self.post_attention_layernorm = RMSNorm(width, eps)
        self.mlp = mlp

    def forward(
        self, x: Float[Tensor, "B L E"], shared: Pass, index: int
    ) -> Float[Tensor, "B _ E"]:
        x = shared.read(index, x + self.attention(self.input_layernorm(x), shared, index))
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    """What the published names put under `model.`."""

    def __init__(self, fields: Fields, shape: Shape) -> None:
        super().__init__()
        width, eps = fields.whole("hidden_size"), fields.real("rms_norm_eps")
        self.word_embeddings = nn.Embedding(fields.whole("vocab_size"), width)
        mlps = (_mlp(fields, index) for index in range(shape.layers))
        self.layers = nn.ModuleList(Layer(width, shape, eps, mlp) for mlp in mlps)
        self.norm = RMSNorm(width, eps)


@FAMILIES.register("LLaDA2MoeModelLM")
class LLaDA2(MaskedDiffusionModel):
    """Names equal the published ones, except that the experts of a layer are stacked."""

    family = "LLaDA2"
    reads_at_the_end = True
    model_type = "llada2_moe"
    end_of_turn = "<|role_end|>"
    residual = r"\.(dense|down_proj)(\.weight)?$"
    precise = r"\.mlp\.gate\."
    summed = r"\.layers\.\d+\.(attention|mlp)$"
    cuts = {  # noqa: RUF012  (never changed)
        r"\.query_key_value$": Cut("out", "fused"),
        r"\.dense$": Cut("in", "queries"),
        r"\.(gate|up)_proj$": Cut("out", "inner"),  # the experts' as well, each of them
        r"\.down_proj$": Cut("in", "inner"),
    }

    def __init__(self, config: dict[str, Any]) -> None:
        fields = Fields(config, self.family)
        _reject_variants(fields)
        shape = _shape(fields)
        super().__init__(config, shape)
        width, rows = fields.whole("hidden_size"), fields.whole("vocab_size")
        self.model = Body(fields, shape)
        self.lm_head = nn.Linear(width, rows, bias=False)

    @property
    def embedding(self) -> Float[Tensor, "V E"]:
        """The input embedding table W_e."""
        return self.model.word_embeddings.weight

    def trunk(self) -> tuple[Iterable[nn.Module], nn.Module, nn.Module]:
        """The layers, the final norm and the head."""
        return self.model.layers, self.model.norm, self.lm_head

    def resize(self, shape: Shape) -> None:
        """The layers have become smaller: they hold so many heads now."""
        super().resize(shape)
        for layer in self.model.layers:
            layer.attention.split = (shape.heads, shape.kv_heads, shape.kv_heads)  # type: ignore[union-attr]


def _mlp(fields: Fields, index: int) -> nn.Module:
    width = fields.whole("hidden_size")
    if index < fields.whole("first_k_dense_replace", 0, least=0):
        return GatedMLP(width, fields.whole("intermediate_size"))
    inner = fields.whole("moe_intermediate_size")
    return MixtureMLP(
        width, inner, fields.whole("num_shared_experts", 0, least=0), _routing(fields)
    )


def _routing(fields: Fields) -> Routing:
    routing = Routing(
        experts=fields.whole("num_experts"),
        chosen=fields.whole("num_experts_per_tok"),
        groups=fields.divides("num_experts", "n_group"),
        kept_groups=fields.whole("topk_group"),
        scale=fields.real("routed_scaling_factor"),
    )
    per_group = routing.experts // routing.groups
    if per_group < 2:
        raise InputError(
            f"config.json: n_group is {routing.groups} for {routing.experts} experts; expected "
            "at least two experts in a group"
        )
    if routing.kept_groups > routing.groups:
        raise InputError(
            f"config.json: topk_group is {routing.kept_groups}; expected at most n_group = "
            f"{routing.groups}"
        )
    if routing.chosen > per_group * routing.kept_groups:
        raise InputError(
            f"config.json: num_experts_per_tok is {routing.chosen}; expected at most the "
            f"{per_group * routing.kept_groups} experts in topk_group groups"
        )
    return routing


def _shape(fields: Fields) -> Shape:
    rows = fields.whole("vocab_size")
    heads = fields.whole("num_attention_heads")
    head_dim = fields.whole("head_dim", fields.whole("hidden_size") // heads)
    block_size = fields.whole("block_size", fields.whole("block_length", BLOCK_SIZE))
    return Shape(
        special=SpecialTokens(
            mask=fields.token("mask_token_id", MASK, rows),
            eos=fields.token("eos_token_id", EOS, rows),
        ),
        max_length=fields.whole("max_position_embeddings"),
        layers=fields.whole("num_hidden_layers"),
        heads=heads,
        kv_heads=fields.divides("num_attention_heads", "num_key_value_heads"),
        head_dim=head_dim,
        rotary_dim=_rotary_dim(fields, head_dim),
        rope_theta=fields.real("rope_theta"),
        block_size=block_size,
    )


def _rotary_dim(fields: Fields, head_dim: int) -> int:
    """From the factor, half of a head unless told; `rotary_dim` must agree with it."""
    dim = int(head_dim * fields.real("partial_rotary_factor", 0.5))
    if dim != fields.whole("rotary_dim", dim) or dim % 2 or not 0 < dim <= head_dim:
        raise InputError(
            f"config.json: rotary_dim is {fields.config.get('rotary_dim')!r} and "
            f"partial_rotary_factor {fields.config.get('partial_rotary_factor')!r}; expected "
            f"both to name the same even number of at most head_dim = {head_dim}"
        )
    return dim


def _reject_variants(fields: Fields) -> None:
    fields.only(
        hidden_act="silu",
        use_bias=False,
        use_qkv_bias=False,
        use_qk_norm=True,
        use_rmsnorm=True,
        use_sliding_window=False,
        rope_scaling=None,
        norm_head=False,
        norm_softmax=False,
        tie_word_embeddings=False,
        using_split_qkv_in_self_attention=False,
        norm_topk_prob=True,
        score_function="sigmoid",
        router_dtype="fp32",
        moe_router_enable_expert_bias=True,
    )

"""Qwen- and Llama-like masked diffusion models: one layout in Hugging Face's names, with flags."""

from collections.abc import Iterable
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.models.attention import Pass
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.dense_config import DenseConfig, read_dense
from xpredflow.models.layers import GatedMLP, RMSNorm
from xpredflow.models.softmax_experts import SoftmaxMixture
from xpredflow.models.split import Cut
from xpredflow.models.variants import VARIANTS
from xpredflow.registry import FAMILIES


class Attention(nn.Module):
    """Separate projections, grouped heads; biases and the norm of queries and keys by flag."""

    def __init__(self, dense: DenseConfig) -> None:
        super().__init__()
        shape = dense.shape
        heads, groups = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(dense.width, heads, bias=dense.qkv_bias)
        self.k_proj = nn.Linear(dense.width, groups, bias=dense.qkv_bias)
        self.v_proj = nn.Linear(dense.width, groups, bias=dense.qkv_bias)
        self.o_proj = nn.Linear(heads, dense.width, bias=dense.out_bias)
        if dense.qk_norm:
            self.q_norm = RMSNorm(shape.head_dim, dense.eps)
            self.k_norm = RMSNorm(shape.head_dim, dense.eps)
        self.normalised, self.head_dim = dense.qk_norm, shape.head_dim

    def forward(
        self, x: Float[Tensor, "B L E"], shared: Pass, index: int
    ) -> Float[Tensor, "B L E"]:
        q, k, v = (
            projection(x).unflatten(-1, (-1, self.head_dim))
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.normalised:
            q, k = self.q_norm(q), self.k_norm(k)
        return self.o_proj(shared.attend(index, q, k, v))


class Layer(nn.Module):
    """Pre-norm attention, then an MLP or experts."""

    def __init__(self, dense: DenseConfig, index: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(dense.width, dense.eps)
        self.self_attn = Attention(dense)
        self.post_attention_layernorm = RMSNorm(dense.width, dense.eps)
        if dense.experts is not None and dense.experts.at(index):
            self.mlp: nn.Module = SoftmaxMixture(dense.width, dense.experts)
        else:
            self.mlp = GatedMLP(dense.width, dense.inner)

    def forward(
        self, x: Float[Tensor, "B L E"], shared: Pass, index: int
    ) -> Float[Tensor, "B _ E"]:
        x = shared.read(index, x + self.self_attn(self.input_layernorm(x), shared, index))
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    """What the published names put under `model.`."""

    def __init__(self, dense: DenseConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(dense.rows, dense.width)
        self.layers = nn.ModuleList(Layer(dense, index) for index in range(dense.shape.layers))
        self.norm = RMSNorm(dense.width, dense.eps)


class TiedHead(nn.Module):
    """The embedding table once more, as the head: one tensor, wherever it is moved to."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self._table = (table,)  # in a tuple it is no part of this module: it has one name only
        self.rows = slice(None)  # of the table, where others read the rest of it

    @property
    def weight(self) -> Float[Tensor, "V E"]:
        """W_e."""
        return self._table[0].weight

    def forward(self, hidden: Float[Tensor, "*S E"]) -> Float[Tensor, "*S V"]:
        return F.linear(hidden, self.weight[self.rows])


class Dense(MaskedDiffusionModel):
    """What a checkpoint is, config.json and the table of variants say; see `DenseConfig`."""

    family = "dense"
    reads_at_the_end = True
    model_type = ""
    end_of_turn = ""
    residual = r"\.(o_proj|down_proj)(\.weight)?$"
    precise = r"\.mlp\.gate\."
    summed = r"\.layers\.\d+\.(self_attn|mlp)$"
    cuts = {  # noqa: RUF012  (never changed)
        r"\.q_proj$": Cut("out", "queries"),
        r"\.[kv]_proj$": Cut("out", "keys"),
        r"\.o_proj$": Cut("in", "queries"),
        r"\.(gate|up)_proj$": Cut("out", "inner"),
        r"\.down_proj$": Cut("in", "inner"),
    }

    def __init__(self, config: dict[str, Any]) -> None:
        dense = read_dense(config)
        super().__init__(config, dense.shape)
        self.family = self.name = dense.variant.family  # type: ignore[misc]
        self.model_type = str(config.get("model_type") or "")  # type: ignore[misc]
        self.variant, self.tied = dense.variant, dense.tied
        self.model = Body(dense)
        if dense.tied:
            self.lm_head: nn.Module = TiedHead(self.model.embed_tokens)
        else:
            self.lm_head = nn.Linear(dense.width, dense.rows, bias=False)
        self.chat_options = dict(dense.variant.chat_options)

    @property
    def embedding(self) -> Float[Tensor, "V E"]:
        """The input embedding table W_e."""
        return self.model.embed_tokens.weight

    def trunk(self) -> tuple[Iterable[nn.Module], nn.Module, nn.Module]:
        """The layers, the final norm and the head."""
        return self.model.layers, self.model.norm, self.lm_head

    def copies(self) -> dict[str, str]:
        """A tied head may be stored once more; it must then be the same."""
        return {"lm_head.weight": "model.embed_tokens.weight"} if self.tied else {}

    def attach(self, tokenizer: Any) -> None:
        """Set the tokenizer, and the other token that ends a text if it has one."""
        self.tokenizer = tokenizer
        known = {} if tokenizer is None else tokenizer.get_vocab()
        for token in self.variant.ends:
            other = known.get(token)
            taken = (None, self.special.eos, self.special.mask)
            if self.special.eot is None and other not in taken and other < len(self.embedding):
                self.special = self.special._replace(eot=other)


for _architecture, _variant in VARIANTS.items():
    FAMILIES.register(_architecture, summary=_variant.about, family=_variant.family)(Dense)

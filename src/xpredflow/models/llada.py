"""LLaDA-8B and LLaDA-1.5: a dense transformer that sees in both directions."""

from collections.abc import Iterable
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.models.attention import Pass, Shape
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.config import REQUIRED, Fields
from xpredflow.models.layers import RMSNorm
from xpredflow.models.split import Cut
from xpredflow.registry import FAMILIES
from xpredflow.types import SpecialTokens


class Block(nn.Module):
    """Pre-norm attention and gated MLP; the names are those of the published tensors."""

    def __init__(self, shape: Shape, inner: int, eps: float) -> None:
        super().__init__()
        width, kv_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.attn_norm = RMSNorm(width, eps)
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, kv_width, bias=False)
        self.v_proj = nn.Linear(width, kv_width, bias=False)
        self.attn_out = nn.Linear(width, width, bias=False)
        self.ff_norm = RMSNorm(width, eps)
        self.ff_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.ff_out = nn.Linear(inner, width, bias=False)
        self.head_dim = shape.head_dim

    def forward(
        self, x: Float[Tensor, "B L E"], shared: Pass, index: int
    ) -> Float[Tensor, "B _ E"]:
        h = self.attn_norm(x)
        q, k, v = (
            projection(h).unflatten(-1, (-1, self.head_dim))
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        x = shared.read(index, x + self.attn_out(shared.attend(index, q, k, v)))
        h = self.ff_norm(x)
        return x + self.ff_out(F.silu(self.ff_proj(h)) * self.up_proj(h))


class Transformer(nn.Module):
    """Everything that has weights, under its published name."""

    def __init__(self, shape: Shape, rows: int, inner: int, eps: float) -> None:
        super().__init__()
        width = shape.heads * shape.head_dim
        self.wte = nn.Embedding(rows, width)
        self.blocks = nn.ModuleList(Block(shape, inner, eps) for _ in range(shape.layers))
        self.ln_f = RMSNorm(width, eps)
        self.ff_out = nn.Linear(width, rows, bias=False)


class Wrapper(nn.Module):
    """Gives the tensors the `model.transformer.` in front of their published names."""

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        self.transformer = transformer


@FAMILIES.register("LLaDAModelLM")
class LLaDA(MaskedDiffusionModel):
    """Tensor names equal the published ones, so that a checkpoint needs no mapping."""

    family = "LLaDA"
    reads_at_the_end = True
    model_type = "llada"
    end_of_turn = "<|eot_id|>"
    residual = r"\.blocks\.\d+\.(attn_out|ff_out)\."
    summed = r"\.blocks\.\d+\.(attn_out|ff_out)$"
    cuts = {  # noqa: RUF012  (never changed)
        r"\.q_proj$": Cut("out", "queries"),
        r"\.[kv]_proj$": Cut("out", "keys"),
        r"\.attn_out$": Cut("in", "queries"),
        r"\.(ff|up)_proj$": Cut("out", "inner"),
        r"\.blocks\.\d+\.ff_out$": Cut("in", "inner"),
    }

    def __init__(self, config: dict[str, Any]) -> None:
        fields = Fields(config, self.family)
        _reject_variants(fields)
        rows = fields.whole("embedding_size", fields.whole("vocab_size"))
        shape = _shape(fields, rows)
        super().__init__(config, shape)
        inner, eps = fields.whole("mlp_hidden_size"), fields.real("rms_norm_eps")
        self.model = Wrapper(Transformer(shape, rows, inner, eps))

    @property
    def embedding(self) -> Float[Tensor, "V E"]:
        """The input embedding table W_e."""
        return self.model.transformer.wte.weight

    def trunk(self) -> tuple[Iterable[nn.Module], nn.Module, nn.Module]:
        """The layers, the final norm and the head."""
        body = self.model.transformer
        return body.blocks, body.ln_f, body.ff_out


def _shape(fields: Fields, rows: int) -> Shape:
    heads = fields.divides("d_model", "n_heads")
    head_dim = fields.whole("d_model") // heads
    return Shape(
        special=SpecialTokens(
            mask=fields.token("mask_token_id", REQUIRED, rows),
            eos=fields.token("eos_token_id", REQUIRED, rows),
        ),
        max_length=fields.whole("max_sequence_length"),
        layers=fields.whole("n_layers"),
        heads=heads,
        kv_heads=fields.divides("n_heads", "n_kv_heads", heads),
        head_dim=head_dim,
        rotary_dim=head_dim,
        rope_theta=fields.real("rope_theta"),
    )


def _reject_variants(fields: Fields) -> None:
    """The published config class can ask for much that no published checkpoint uses."""
    fields.only(
        block_type="llama",
        block_group_size=1,
        layer_norm_type="rms",
        layer_norm_with_affine=True,
        bias_for_layer_norm=False,
        attention_layer_norm=False,
        input_emb_norm=False,
        activation_type="silu",
        include_bias=False,
        include_qkv_bias=False,
        rope=True,
        rope_full_precision=True,
        alibi=False,
        multi_query_attention=False,
        scale_logits=False,
        weight_tying=False,
    )

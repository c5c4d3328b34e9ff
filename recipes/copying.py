"""Weights to start from that already copy: what a token attends to, it tends to predict.

Copying a name from the prompt needs three matrices that fit each other (values, the output of
attention, the head), and from independent random ones that is found late and abruptly; docs/log.md
has the figures. Here the head starts as the embedding and each layer's output as the transpose of
its values, so that only where to look is left to learn. The idea is that of mimetic
initialisation (arXiv 2305.09828).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.models import MaskedDiffusionModel

STREAM = 5  # apart from the draws of the other weights, which the same seed decides
LOGIT = 3.0  # of a token that stands alone in the stream


@torch.no_grad()
def start_copying(model: MaskedDiffusionModel, seed: int) -> None:
    """Overwrite embedding, head, values and attention outputs; the rest keeps its start."""
    draw = torch.Generator().manual_seed(seed + STREAM)
    layers, _, head = model.trunk()
    assert isinstance(head, nn.Linear)
    table = torch.randn(model.embedding.shape, generator=draw)
    model.embedding.copy_(table)
    head.weight.copy_(table * (LOGIT / table.shape[1]))
    for layer in layers:
        values, output = _attention(layer, model.shape.kv_heads * model.shape.head_dim)
        width = values.shape[1]
        basis = torch.linalg.qr(torch.randn(width, width, generator=draw)).Q[: len(values)]
        values.copy_(basis)
        output.copy_(_transposed(basis, model.shape.kv_heads, model.shape.heads))


def _attention(layer: nn.Module, values: int) -> tuple[Tensor, Tensor]:
    """The rows that make values and the matrix that takes them back, by their published names."""
    weights = dict(layer.named_parameters())
    if "v_proj.weight" in weights:
        return weights["v_proj.weight"], weights["attn_out.weight"]
    fused = weights["attention.query_key_value.weight"]
    return fused[-values:], weights["attention.dense.weight"]


def _transposed(basis: Float[Tensor, "K E"], groups: int, heads: int) -> Float[Tensor, "E P"]:
    """What undoes `basis` after attention: heads that share a group share its part of it."""
    share = heads // groups
    parts = basis.unflatten(0, (groups, -1)).repeat_interleave(share, 0) / share
    return parts.flatten(0, 1).T

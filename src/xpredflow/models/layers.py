"""Layers that the families share."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Normalise in fp32, cast back, then scale: the order upstream uses, which matters in bf16."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S D"]:
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        # A checkpoint may hold its norms in fp32 beside bf16 matrices.
        return (wide * scale).to(x.dtype) * self.weight.to(x.dtype)


class GatedMLP(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S D"]:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))

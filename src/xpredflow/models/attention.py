"""What all layers of one forward pass share: rotary angles, the attention mask, the cache.

Dimension names beside those of types.py: H query heads, G key and value heads, D head width,
R rotated dimensions, K keys that a row can attend to.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.models.cache import CacheView
from xpredflow.types import SpecialTokens, shadow


@dataclass(frozen=True)
class Shape:
    """The numbers of an architecture that are needed outside its own layers."""

    special: SpecialTokens
    max_length: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rotary_dim: int
    rope_theta: float
    block_size: int | None = None
    shift: int = 0  # 1: the hidden state at a position predicts the next one
    anchor: str = "start"  # where blocks are counted from: the row's start, or its response


@dataclass(frozen=True)
class Pass:
    """One forward pass over a batch; `mask` is None where every query sees every key."""

    cos: Float[Tensor, "B L 1 R"]
    sin: Float[Tensor, "B L 1 R"]
    mask: Bool[Tensor, "B 1 Q K"] | None
    view: CacheView | None

    @classmethod
    def begin(cls, positions: Int[Tensor, "B L"], shape: Shape, view: CacheView | None) -> "Pass":
        """Angles and mask are computed here once, and used by every layer."""
        cos, sin = rotary(positions, shape.rotary_dim, shape.rope_theta)
        keys = positions if view is None else view.key_positions
        mask = visible(positions, keys, shape.block_size)
        if mask is not None:
            # One copy per query head of a group, because `attend` folds them into the queries.
            mask = mask.repeat(1, shape.heads // shape.kv_heads, 1).unsqueeze(1)
        return cls(cos, sin, mask, view)

    def attend(
        self,
        layer: int,
        q: Float[Tensor, "B L H D"],
        k: Float[Tensor, "B L G D"],
        v: Float[Tensor, "B L G D"],
    ) -> Float[Tensor, "B L HD"]:
        """Rotate q and k, store k and v if there is a cache, and attend."""
        q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
        if self.view is not None:
            k, v = self.view.update(layer, k, v)
        batch, length, heads, width = q.shape
        groups = k.shape[2]
        # Query heads that share a key head become further queries of it: the keys need no copy,
        # and any attention kernel will do (those with a mask rarely know grouped heads).
        q = q.view(batch, length, groups, -1, width).permute(0, 2, 3, 1, 4)
        out = F.scaled_dot_product_attention(
            q.reshape(batch, groups, -1, width),
            k.transpose(1, 2),
            v.transpose(1, 2),
            attn_mask=self.mask,
        )
        out = out.view(batch, heads, length, width).transpose(1, 2)
        return out.reshape(batch, length, heads * width)


def rotary(
    positions: Int[Tensor, "B L"], dim: int, theta: float
) -> tuple[Float[Tensor, "B L 1 {dim}"], Float[Tensor, "B L 1 {dim}"]]:
    """cos and sin of the angles at these positions, in fp32 whatever the weights are."""
    powers = torch.arange(0, dim, 2, device=positions.device, dtype=torch.float32) / dim
    angles = place(positions).clamp(min=0).float().unsqueeze(-1) * (1.0 / theta**powers)
    angles = torch.cat((angles, angles), dim=-1).unsqueeze(2)
    return angles.cos(), angles.sin()


def rotate(
    x: Float[Tensor, "B L H D"], cos: Float[Tensor, "B L 1 R"], sin: Float[Tensor, "B L 1 R"]
) -> Float[Tensor, "B L H D"]:
    """Rotate the first R dimensions, halves against each other, in fp32; the others pass."""
    turned, rest = x[..., : cos.shape[-1]].float(), x[..., cos.shape[-1] :]
    low, high = turned.chunk(2, dim=-1)
    turned = turned * cos + torch.cat((-high, low), dim=-1) * sin
    return torch.cat((turned.to(x.dtype), rest), dim=-1)


def place(positions: Int[Tensor, "B L"]) -> Int[Tensor, "B L"]:
    """Where inputs stand: a shadow stands where its position does; -1 is padding."""
    return torch.where(positions < -1, shadow(positions), positions)


def visible(
    queries: Int[Tensor, "B L"], keys: Int[Tensor, "B K"], block_size: int | None
) -> Bool[Tensor, "B L K"] | None:
    """Which query sees which key, both given by absolute position; -1 is padding.

    Nothing sees a padded key. With blocks, query i sees key j iff floor(j/b) <= floor(i/b).
    A shadow sees other shadows and every key but the one at its own place; no other query sees it.
    """
    filled = keys >= 0
    shadowed = bool((queries < -1).any())
    if block_size is None and not shadowed and bool(filled.all()):
        return None
    mask = filled.unsqueeze(1).expand(-1, queries.shape[1], -1)
    if shadowed:
        own = place(queries).unsqueeze(-1) == keys.unsqueeze(1)
        beside = (mask & ~own) | (keys < -1).unsqueeze(1)
        mask = torch.where((queries < -1).unsqueeze(-1), beside, mask)
    if block_size is not None:
        padded = (queries == -1).unsqueeze(-1)
        blocks_of_keys = (place(keys) // block_size).unsqueeze(1)
        earlier = blocks_of_keys <= (place(queries) // block_size).unsqueeze(-1)
        # A padded query sees every filled key: its output is never used but must be finite.
        mask = mask & (earlier | padded)
    return mask | ~mask.any(-1, keepdim=True)

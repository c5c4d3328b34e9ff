"""What all layers of one forward pass share: rotary angles, the attention mask, the cache.

Dimension names beside those of types.py: H query heads, G key and value heads, D head width,
R rotated dimensions, K keys that a row can attend to.
"""

from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.models.cache import BlockCache, CacheView
from xpredflow.models.positions import PositionMemo, Rows, place
from xpredflow.types import SpecialTokens


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
    """One forward pass over a batch; `mask` is None where every query sees every key.

    `columns` are the inputs that something is read of, where the `last` layer may end with them.
    """

    cos: Float[Tensor, "B L 1 R"]
    sin: Float[Tensor, "B L 1 R"]
    mask: Bool[Tensor, "B 1 Q K"] | None
    view: CacheView | None
    elsewhere: dict[torch.device, "Pass"] = field(default_factory=dict, compare=False)
    columns: Int[Tensor, "B N"] | None = None
    last: int = 0

    @classmethod
    def begin(
        cls,
        positions: Int[Tensor, "B L"],
        shape: Shape,
        cache: BlockCache | None = None,
        slots: Int[Tensor, " B"] | None = None,
    ) -> "Pass":
        """Angles and mask are computed once and used by every layer, and by every further pass of
        the same positions: only the first of them makes the host wait for the device."""
        rows, shared = _PASSES.get(
            positions, (shape, cache, slots), lambda: _begin(positions, shape, cache, slots)
        )
        if cache is not None:
            cache.claim(rows)
        return shared

    def to(self, device: torch.device) -> "Pass":
        """The same for layers on another device; copied once for all passes of these positions."""
        if device == self.cos.device:
            return self
        if device not in self.elsewhere:
            mask = None if self.mask is None else self.mask.to(device)
            view = None if self.view is None else self.view.to(device)
            moved = replace(self, cos=self.cos.to(device), sin=self.sin.to(device), mask=mask)
            self.elsewhere[device] = replace(moved, view=view, elsewhere=self.elsewhere)
        return self.elsewhere[device]

    def read(self, layer: int, x: Float[Tensor, "B L E"]) -> Float[Tensor, "B _ E"]:
        """What the rest of a layer is run on: behind the last attention no input is seen again."""
        return x if self.columns is None or layer != self.last else at(x, self.columns)

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
        batch, length, _, width = q.shape
        groups = k.shape[2]
        # Query heads that share a key head become further queries of it: the keys need no copy,
        # and any attention kernel will do (those with a mask rarely know grouped heads).
        q = q.unflatten(2, (groups, -1)).permute(0, 2, 3, 1, 4)
        queries = q.reshape(batch, groups, -1, width)
        out = _attention(queries, k.transpose(1, 2), v.transpose(1, 2), self.mask)
        # Kernels lay their result out as they like: nothing here may count on a view of it.
        out = out.unflatten(2, (-1, length)).permute(0, 3, 1, 2, 4)
        return out.reshape(batch, length, -1)


_PASSES = PositionMemo()


def at(x: Float[Tensor, "B L E"], columns: Int[Tensor, "B N"]) -> Float[Tensor, "B N E"]:
    """Some of the inputs of each row."""
    return x.gather(1, columns.unsqueeze(-1).expand(-1, -1, x.shape[-1]))


def attends_in_float(device: torch.device) -> bool:
    """Whether autocast is left aside: backwards a CPU takes twice as long in bfloat16."""
    return device.type == "cpu"


def _attention(
    q: Float[Tensor, "B G Q D"],
    k: Float[Tensor, "B G K D"],
    v: Float[Tensor, "B G K D"],
    mask: Bool[Tensor, "B 1 Q K"] | None,
) -> Float[Tensor, "B G Q D"]:
    if attends_in_float(q.device) and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _begin(
    positions: Int[Tensor, "B L"],
    shape: Shape,
    cache: BlockCache | None,
    slots: Int[Tensor, " B"] | None,
) -> tuple[Rows, Pass]:
    rows = Rows.read(positions, slots)
    view = None if cache is None else cache.open(positions, rows, slots)
    cos, sin = rotary(positions, shape.rotary_dim, shape.rope_theta)
    mask = None
    # a row may begin behind position 0, where its slot holds keys of nobody
    starts_late = cache is not None and cache.latest_start > 0
    key_ends = None if cache is None else cache.key_ends(rows)
    if starts_late or not rows.all_visible(shape.block_size, key_ends):
        keys = positions if view is None else view.key_positions
        mask = visible(positions, keys, shape.block_size)
        # One copy per query head of a group, because `attend` folds them into the queries.
        mask = mask.repeat(1, shape.heads // shape.kv_heads, 1).unsqueeze(1)
    return rows, Pass(cos, sin, mask, view)


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


def visible(
    queries: Int[Tensor, "B L"], keys: Int[Tensor, "B K"], block_size: int | None
) -> Bool[Tensor, "B L K"]:
    """Which query sees which key, both given by absolute position; -1 is padding.

    Nothing sees a padded key. With blocks, query i sees key j iff floor(j/b) <= floor(i/b).
    A shadow sees other shadows and every key but the one at its own place; no other query sees it.
    """
    filled = (keys >= 0).unsqueeze(1)
    own = place(queries).unsqueeze(-1) == keys.unsqueeze(1)
    beside = (filled & ~own) | (keys < -1).unsqueeze(1)
    mask = torch.where((queries < -1).unsqueeze(-1), beside, filled)
    if block_size is not None:
        padded = (queries == -1).unsqueeze(-1)
        blocks_of_keys = (place(keys) // block_size).unsqueeze(1)
        earlier = blocks_of_keys <= (place(queries) // block_size).unsqueeze(-1)
        # A padded query sees every filled key: its output is never used but must be finite.
        mask = mask & (earlier | padded)
    return mask | ~mask.any(-1, keepdim=True)

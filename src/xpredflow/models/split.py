"""Which part of every matrix a process holds, where several hold one model together.

Query heads, the inner widths of MLPs and experts, and the vocabulary are shared out evenly. A layer
of one process then gives a part of two sums, after attention and after the MLP, and the processes
add their parts up. Nothing else differs: matrices are plain ones of a smaller size, so that every
kernel, cache and quantised format works on them as it is.

Dimension names: O rows and I columns of a matrix.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from xpredflow.errors import InputError
from xpredflow.models.shards import Stored

if TYPE_CHECKING:
    from xpredflow.models.base import MaskedDiffusionModel

Ranges = tuple[tuple[int, int], ...]
AT_ONCE = 2**22  # values of a matrix that are read whole before its columns are cut


class Cut(NamedTuple):
    """Which side of a family's matrix is shared out, and by what.

    out: its rows, so that each process computes some of the results; in: its columns, so that each
    computes a part of a sum. By query heads, key heads, the three kinds stacked (`fused`), or
    evenly along an inner width.
    """

    side: Literal["out", "in"]
    by: Literal["queries", "keys", "fused", "inner"]


@dataclass(frozen=True)
class Part:
    """The rows (`dim` 0) or columns (1) of a matrix that a process holds; none: zeros instead."""

    dim: int
    ranges: Ranges

    @property
    def size(self) -> int:
        """How many they are."""
        return sum(stop - start for start, stop in self.ranges)

    def of(self, stored: Stored) -> "Piece":
        """The same part of a tensor in its file."""
        return Piece(stored, self)


@dataclass(frozen=True)
class Piece:
    """A part of a stored tensor; it is read as a `Stored` of its own size would be."""

    stored: Stored
    part: Part

    @property
    def dtype(self) -> torch.dtype:
        """As it is stored."""
        return self.stored.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the part."""
        sizes = list(self.stored.shape)
        if self.part.ranges:
            sizes[self.part.dim] = self.part.size
        return tuple(sizes)

    def rows(self, start: int, stop: int) -> "Piece":
        """Its rows from `start` to before `stop`."""
        if self.part.dim:
            return replace(self, stored=self.stored.rows(start, stop))
        return replace(self, part=replace(self.part, ranges=tuple(self._clipped(start, stop))))

    def _clipped(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        done = 0
        for first, last in self.part.ranges:
            low, high = max(start - done, 0), min(stop - done, last - first)
            if low < high:
                yield first + low, first + high
            done += last - first

    def read_into(self, target: Tensor) -> None:
        """Copy the values into a contiguous tensor of this shape, of any dtype and device."""
        if not self.part.ranges:
            target.zero_()
            return
        if self.part.dim == 0:
            done = 0
            for start, stop in self.part.ranges:
                self.stored.rows(start, stop).read_into(target[done : done + stop - start])
                done += stop - start
            return
        rows, columns = self.stored.shape
        step = max(1, AT_ONCE // columns)
        for first in range(0, rows, step):
            some = self.stored.rows(first, min(first + step, rows))
            whole = torch.empty(some.shape, dtype=some.dtype)
            some.read_into(whole)
            mine = torch.cat([whole[:, start:stop] for start, stop in self.part.ranges], dim=1)
            target[first : first + step].copy_(mine)


@dataclass(frozen=True)
class Split:
    """Process `rank` of the `world` that hold a model together."""

    rank: int
    world: int

    def apply(self, model: "MaskedDiffusionModel") -> dict[str, Part]:
        """Shrink a model on the meta device to what this process holds: its tensors' parts."""
        self._check(model)
        head_names = {f"{name}.weight" for name, m in model.named_modules() if m is _head(model)}
        parts: dict[str, Part] = {}
        for name, tensor in model.state_dict().items():
            if name in head_names:
                parts[name] = Part(0, (self.vocabulary(tensor.shape[0]),))
            elif (cut := cut_of(model, name)) is not None:
                parts[name] = self._part(model, name, tensor, cut)
        for name, part in parts.items():
            _shrink(model, name, part)
        head = _head(model)
        if hasattr(head, "rows"):  # the embedding table, which stays whole
            head.rows = slice(*self.vocabulary(len(model.embedding)))  # type: ignore[assignment]
        shape = model.shape
        heads, groups = shape.heads // self.world, max(1, shape.kv_heads // self.world)
        model.resize(replace(shape, heads=heads, kv_heads=groups))
        return parts

    def vocabulary(self, rows: int) -> tuple[int, int]:
        """The rows of the head; the last process may have fewer than the others."""
        each = -(-rows // self.world)
        return min(self.rank * each, rows), min((self.rank + 1) * each, rows)

    def _check(self, model: "MaskedDiffusionModel") -> None:
        if not model.cuts:
            raise InputError(
                f"models of the family {model.family!r} are not shared out: leave out"
                " tensor_parallel, or use device_map='auto'"
            )
        shape, world = model.shape, self.world
        if shape.heads % world or (shape.kv_heads % world and world % shape.kv_heads):
            raise InputError(
                f"tensor_parallel with {world} processes, but the model has {shape.heads} query"
                f" heads and {shape.kv_heads} key heads: start a number of processes that divides"
                " them"
            )

    def _part(self, model: "MaskedDiffusionModel", name: str, tensor: Tensor, cut: Cut) -> Part:
        if tensor.ndim == 1 and cut.side == "in":  # a bias is added once
            return Part(0, () if self.rank else ((0, tensor.shape[0]),))
        dim = 0 if tensor.ndim == 1 or cut.side == "out" else 1
        size = tensor.shape[dim + max(0, tensor.ndim - 2)]
        if cut.by == "inner":
            if size % self.world:
                raise InputError(
                    f"tensor_parallel with {self.world} processes, but {name} is {size} wide: start"
                    " a number of processes that divides it"
                )
            return Part(dim, (self._even(size),))
        shape = model.shape
        queries, keys = self._heads(shape.heads, shape), self._heads(shape.kv_heads, shape)
        if cut.by != "fused":
            return Part(dim, (queries if cut.by == "queries" else keys,))
        before_keys = shape.heads * shape.head_dim
        before_values = before_keys + shape.kv_heads * shape.head_dim
        ranges = (queries, _moved(keys, before_keys), _moved(keys, before_values))
        return Part(dim, ranges)

    def _even(self, size: int) -> tuple[int, int]:
        return size * self.rank // self.world, size * (self.rank + 1) // self.world

    def _heads(self, heads: int, shape: Any) -> tuple[int, int]:
        """Of few key heads, several processes hold the same one: that of their queries."""
        first = heads * self.rank // self.world
        count = max(1, heads // self.world)
        return first * shape.head_dim, (first + count) * shape.head_dim


def cut_of(model: "MaskedDiffusionModel", name: str) -> Cut | None:
    """How a tensor is cut; None: every process holds it whole."""
    matrix = re.sub(r"\.(weight|bias)$", "", name)
    return next((cut for pattern, cut in model.cuts.items() if re.search(pattern, matrix)), None)


def _head(model: "MaskedDiffusionModel") -> nn.Module:
    return model.trunk()[2]


def _moved(places: tuple[int, int], offset: int) -> tuple[int, int]:
    return places[0] + offset, places[1] + offset


def _shrink(model: nn.Module, name: str, part: Part) -> None:
    """Give a parameter on the meta device the size of its part."""
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    tensor = getattr(module, leaf)
    sizes = list(tensor.shape)
    if part.ranges:
        sizes[part.dim + max(0, tensor.ndim - 2)] = part.size
    with torch.device("meta"):
        setattr(module, leaf, nn.Parameter(torch.empty(sizes, dtype=tensor.dtype)))
    if isinstance(module, nn.Linear) and leaf == "weight":
        module.out_features, module.in_features = sizes

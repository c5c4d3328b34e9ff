"""Weights in 8 or 4 bits, unpacked where they are multiplied; activations stay as they are.

A pass of a diffusion model multiplies every matrix by hundreds of positions, so that unpacking it
first costs little beside the product, on any device and in any dtype. What is packed are the
matrices of the layers and the head. The embedding table never is: decoding happens in its space.
Neither are norms and routers.

Dimension names: O rows and I columns of a matrix, X matrices of a stack, S groups of columns,
R some of the rows.
"""

import math
import re
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from xpredflow.errors import InputError, unknown_name
from xpredflow.models.int4_layouts import StoredInt4
from xpredflow.models.shards import Stored
from xpredflow.models.split import Piece

Quantize = Literal["int8", "int4"]
GROUPS = (128, 64, 32, 16, 8)  # columns with a scale of their own in int4: the largest that divides
UNPACKED_AT_ONCE = 2**24  # weights that are held unpacked beside the packed ones
READ_AT_ONCE = 2**15  # weights held unpacked while they are read: larger parts leave larger holes
NONE = "none"  # in place of a format: unpack what is stored packed
Index = int | slice | Tensor | tuple[int, slice]


class PackedWeight(nn.Module):
    """A matrix, or a stack of them, in `bits` bits; `shape` and `dtype` are those of the weights.

    int8 has one scale per row. int4 has a scale and an offset per group of columns, and two weights
    in a byte; `places` says where each column is, where groups are not made of neighbours. It is
    made empty and written a few rows at a time, so that the weights need not be held unpacked.
    """

    values: Tensor
    scale: Tensor
    offset: Tensor | None
    places: Tensor | None

    def __init__(
        self,
        shape: tuple[int, ...],
        bits: int,
        dtype: torch.dtype,
        device: torch.device,
        group: int | None = None,
    ) -> None:
        super().__init__()
        self.shape, self.bits, self.dtype = shape, bits, dtype
        *rows, columns = shape
        if bits == 8:
            sizes, scales, kind, self.group = shape, (*rows, 1), torch.int8, columns
        else:
            self.group = group or group_size(columns)
            sizes, kind = (*rows, columns // self.group, self.group // 2), torch.uint8
            scales = (*rows, columns // self.group, 1)
        self.register_buffer("values", torch.empty(sizes, dtype=kind, device=device))
        self.register_buffer("scale", torch.empty(scales, device=device))
        offset = None if bits == 8 else torch.empty(scales, device=device)
        self.register_buffer("offset", offset)
        self.register_buffer("places", None)

    @classmethod
    def of(cls, weight: Float[Tensor, "*X O I"], bits: int) -> "PackedWeight":
        """A weight that is at hand, packed."""
        packed = cls(tuple(weight.shape), bits, weight.dtype, weight.device)
        packed.write(slice(None), weight.detach())
        return packed

    def write(self, index: Index, weight: Float[Tensor, "*X O I"]) -> None:
        """Pack some rows of a matrix, or of a matrix of the stack, into their place."""
        parts = _to_int8(weight) if self.bits == 8 else _to_int4(weight, self.group)
        for buffer, part in zip((self.values, self.scale, self.offset), parts, strict=True):
            if buffer is not None and part is not None:
                buffer[index] = part

    def read(self, stored: Stored | StoredInt4 | Piece, place: int | None = None) -> None:
        """Take a tensor from its file: the whole weight, or the matrix at a place of the stack."""
        if isinstance(stored, StoredInt4):
            self._read_packed(stored, slice(None) if place is None else place)
            return
        rows, columns = stored.shape[0], math.prod(stored.shape[1:])
        step = max(1, READ_AT_ONCE // columns)
        room = torch.empty(
            (min(step, rows), *stored.shape[1:]), dtype=self.dtype, device=self.values.device
        )
        for start in range(0, rows, step):
            part = stored.rows(start, min(start + step, rows))
            weight = room[: part.shape[0]]
            part.read_into(weight)
            where = slice(start, start + part.shape[0])
            self.write(where if place is None else (place, where), weight)

    def _read_packed(self, stored: StoredInt4, place: int | slice) -> None:
        """Take over the numbers as they are stored, where their groups are ours."""
        matrix = stored.matrix()
        if not stored.kept:
            self.write(place, matrix.weight())
            return
        order = matrix.order()
        in_groups = torch.arange(len(order)) // self.group
        if stored.group != self.group or not torch.equal(matrix.groups[order], in_groups):
            raise InputError(
                f"tensor {stored.qweight.key!r}: its groups have not {self.group} columns each, as"
                f" they would have to in 4 bits; load it with quantize={NONE!r} or 'int8'"
            )
        numbers = matrix.numbers[:, order].unflatten(-1, (-1, self.group))
        self.values[place] = _pairs(numbers).to(self.values.device)
        self.scale[place] = matrix.scale.unsqueeze(-1).to(self.scale)
        assert self.offset is not None
        self.offset[place] = matrix.offset.unsqueeze(-1).to(self.scale)
        if not torch.equal(order, torch.arange(len(order))):
            if self.places is None:
                places = torch.arange(len(order), device=self.scale.device)
                self.places = places.repeat(*self.shape[:-2], 1).view(*self.shape[:-2], -1)
            self.places[place] = order.argsort().to(self.places)

    def __getitem__(self, index: int | slice | Tensor) -> Float[Tensor, "..."]:
        """Some rows of a matrix or some matrices of a stack, unpacked."""
        offset = None if self.offset is None else self.offset[index]
        weight = _unpacked(self.values[index], self.scale[index], offset).to(self.dtype)
        if self.places is None:
            return weight
        places = self.places if len(self.shape) == 2 else self.places[index]
        return weight.gather(-1, places.unsqueeze(-2).expand_as(weight))

    def multiply(self, x: Float[Tensor, "*S I"], rows: slice) -> Float[Tensor, "*S R"]:
        """x times some rows of a matrix."""
        if self.bits == 8 and x.dtype != torch.float16:
            # 8 bits are exact in bfloat16: scaling what comes out costs less than scaling weights.
            # In float16 the sums could be too large.
            out = F.linear(x, self.values[rows].to(x.dtype))
            return (out * self.scale[rows].squeeze(-1)).to(x.dtype)
        return F.linear(x, self[rows].to(x.dtype))

    def unbind(self, dim: int = 0) -> "PackedWeight":
        """The matrices of a stack one by one, each unpacked when it is taken."""
        return self


class PackedLinear(nn.Module):
    """In place of nn.Linear."""

    bias: nn.Parameter | None

    def __init__(self, weight: PackedWeight, bias: nn.Parameter | None = None) -> None:
        super().__init__()
        self.weight = weight
        self.register_parameter("bias", bias)
        self.out_features, self.in_features = weight.shape

    def forward(self, x: Float[Tensor, "*S I"]) -> Float[Tensor, "*S O"]:
        # a few rows at a time: the head alone would be 2 GB in fp32
        step = max(1, UNPACKED_AT_ONCE // self.in_features)
        starts = range(0, self.out_features, step)
        parts = [self.weight.multiply(x, slice(start, start + step)) for start in starts]
        whole = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return whole if self.bias is None else whole + self.bias.to(x.dtype)


def _to_int8(weight: Float[Tensor, "*X O I"]) -> tuple[Tensor, Tensor, None]:
    wide = weight.float()
    scale = wide.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 127
    return (wide / scale).round_().clamp_(-127, 127).to(torch.int8), scale, None


def _to_int4(weight: Float[Tensor, "*X O I"], group: int) -> tuple[Tensor, Tensor, Tensor]:
    grouped = weight.float().unflatten(-1, (-1, group))
    low, high = grouped.amin(-1, keepdim=True), grouped.amax(-1, keepdim=True)
    scale = (high - low).clamp(min=1e-12) / 15
    numbers = ((grouped - low) / scale).round().clamp(0, 15).to(torch.uint8)
    return _pairs(numbers), scale, low


def _pairs(numbers: UInt8[Tensor, "..."]) -> UInt8[Tensor, "..."]:
    return numbers[..., ::2] | numbers[..., 1::2] << 4


def _unpacked(
    values: Int[Tensor, "..."] | UInt8[Tensor, "..."], scale: Tensor, offset: Tensor | None
) -> Float[Tensor, "..."]:
    if offset is None:
        return values * scale
    numbers = torch.stack((values & 15, values >> 4), dim=-1).flatten(-2)
    return (numbers * scale + offset).flatten(-2)


def group_size(columns: int) -> int:
    """How many columns share a scale in int4."""
    for size in GROUPS:
        if columns % size == 0:
            return size
    raise InputError(
        f"quantize is 'int4' but a matrix has {columns} columns, no multiple of {GROUPS[-1]}: use"
        " 'int8'"
    )


def as_quantize(quantize: str | None) -> Quantize | None:
    """The name of a format, checked; None where weights are not to be packed."""
    if quantize is not None and quantize not in (*get_args(Quantize), NONE):
        raise unknown_name("quantize", quantize, (*get_args(Quantize), NONE))
    return None if quantize == NONE else quantize  # type: ignore[return-value]


def is_kept(tensor: Stored | StoredInt4) -> bool:
    """Whether a tensor is stored in 4 bits and stays in them."""
    return isinstance(tensor, StoredInt4) and tensor.kept


def is_packable(name: str, tensor: Tensor, table: Tensor, precise: str) -> bool:
    """Whether a tensor of a model is one of the matrices that are packed."""
    return tensor.ndim > 1 and tensor is not table and not re.search(precise, name)


def make_room(
    model: nn.Module,
    name: str,
    quantize: Quantize | None,
    head: nn.Module,
    stored: Stored | StoredInt4 | Piece,
    dtype: torch.dtype,
    device: torch.device,
) -> PackedWeight:
    """Put an empty packed weight in the place of a parameter; the head has 8 bits by itself.

    The head decides between close tokens, and is a small share of a large model.
    """
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    bits, group = 8 if module is head or quantize == "int8" else 4, None
    if isinstance(stored, StoredInt4) and stored.kept:
        bits, group = 4, stored.group
    weight = PackedWeight(tuple(getattr(module, leaf).shape), bits, dtype, device, group)
    if isinstance(module, nn.Linear):
        parent, _, own = owner.rpartition(".")
        setattr(model.get_submodule(parent), own, PackedLinear(weight, module.bias))
    else:
        delattr(module, leaf)
        setattr(module, leaf, weight)
    return weight


def refuse_quantised(model: object, what: str) -> None:
    """Packed weights are for decoding alone, and so are parts of weights."""
    if getattr(model, "team", None) is not None:
        raise InputError(
            f"the model was loaded with tensor_parallel and cannot be {what}: load it without"
        )
    kind: str | None = getattr(model, "quantized", None)
    if kind is not None:
        raise InputError(
            f"the model was loaded with quantize={kind!r} and cannot be {what}: load it without"
            f" (quantize={NONE!r} where the files are quantised)"
        )

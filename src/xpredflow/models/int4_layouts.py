"""Checkpoints that GPTQ and AWQ tools stored in 4 bits, read as if their matrices were whole.

A linear layer L has four tensors in the place of L.weight. L.qweight holds numbers q, eight in an
int32. L.scales and L.qzeros hold a scale s and a zero point z for each row and group of columns,
the latter packed too; GPTQ's L.g_idx says which group a column belongs to (with desc_act columns
of a group are not neighbours). The weight is s (q - z).

- GPTQ puts eight columns of one row into an int32, AWQ ("gemm") eight rows of one column, in the
  order 0, 2, 4, 6, 1, 3, 5, 7. Zero points are packed by rows in both.
- "gptq" files hold z - 1, taken from all eight of an int32 at once; "gptq_v2" files hold z.

Dimension names: O rows, I columns, S groups of columns, P packed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.models.shards import Stored

LAYOUTS = ("gptq", "gptq_v2", "gemm")  # by the name of the format; the last one is AWQ's
_METHODS = {"gptq": LAYOUTS[:2], "awq": LAYOUTS[2:]}
_PARTS = (".qweight", ".qzeros", ".scales", ".g_idx")
_IN_ORDER, _AWQ_PLACES = list(range(8)), [0, 4, 1, 5, 2, 6, 3, 7]  # of the rows in an int32
_ONES = 0x11111111


@dataclass(frozen=True)
class Int4Matrix:
    """number * scale + offset; the scales and offsets are those of a column's group."""

    numbers: UInt8[Tensor, "O I"]
    scale: Float[Tensor, "O S"]
    offset: Float[Tensor, "O S"]
    groups: Int[Tensor, " I"]

    def weight(self) -> Float[Tensor, "O I"]:
        """Unpacked, in fp32."""
        return self.numbers * self.scale[:, self.groups] + self.offset[:, self.groups]

    def order(self) -> Int[Tensor, " I"]:
        """The columns group by group."""
        return self.groups.argsort(stable=True)


@dataclass(frozen=True)
class StoredInt4:
    """What `Stored` is, of several tensors that are one matrix together.

    `dtype` is that of the checkpoint's other matrices; `kept`: it stays in its 4 bits.
    """

    key: str
    dtype: torch.dtype
    layout: str
    kept: bool
    qweight: Stored
    qzeros: Stored
    scales: Stored
    g_idx: Stored | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        first, second = self.qweight.shape
        return (8 * second, first) if self.layout == "gemm" else (second, 8 * first)

    @property
    def size(self) -> int:
        """How many weights it has."""
        return math.prod(self.shape)

    @property
    def group(self) -> int:
        """Columns that share a scale."""
        return self.shape[1] // self.scales.shape[0]

    def matrix(self) -> Int4Matrix:
        """Its numbers, scales and groups, from the files."""
        numbers, zeros = _nibbles(_read(self.qweight)), _read(self.qzeros)
        scale = _read(self.scales).float().T.contiguous()
        if self.layout == "gemm":
            places, numbers = _AWQ_PLACES, numbers[..., _AWQ_PLACES].flatten(1).T
        else:
            places, numbers = _IN_ORDER, numbers.permute(1, 0, 2).flatten(1)
            # as the whole int32, so that what was borrowed from a neighbour is given back
            zeros = zeros + _ONES if self.layout == "gptq" else zeros
        offset = _nibbles(zeros)[..., places].flatten(1).T * -scale
        return Int4Matrix(numbers.contiguous(), scale, offset, self._groups())

    def read_into(self, target: Tensor) -> None:
        """Copy the weights into a tensor of this shape, of any dtype and device."""
        target.copy_(self.matrix().weight())

    def equals(self, target: Tensor) -> bool:
        """Whether a tensor of this shape has these weights, in its own dtype."""
        return torch.equal(target, self.matrix().weight().to(target))

    def _groups(self) -> Int[Tensor, " I"]:
        count, columns = self.scales.shape[0], self.shape[1]
        if self.g_idx is None:
            return torch.arange(columns) // (columns // count)
        groups = _read(self.g_idx).long()
        if groups.min() < 0 or groups.max() >= count:
            raise InputError(
                f"tensor {self.g_idx.key!r} names groups from {int(groups.min())} to"
                f" {int(groups.max())}, but there are {count}: download the checkpoint again"
            )
        return groups


def layout_of(config: Mapping[str, Any]) -> str | None:
    """The layout that config.json states, None where weights are stored whole; else it refuses."""
    stated = config.get("quantization_config")
    if not stated:
        return None
    fields = stated if isinstance(stated, dict) else {"quant_method": stated}
    method = str(fields.get("quant_method", "unknown")).lower()
    if method not in _METHODS:
        raise _unread(f"quant_method {method!r}")
    names = ("checkpoint_format", "format", "version")
    told = next((fields[name] for name in names if fields.get(name)), _METHODS[method][0])
    layout = "marlin" if fields.get("is_marlin_format") else str(told).lower()
    if layout not in _METHODS[method]:
        raise _unread(f"quant_method {method!r}, format {layout!r}")
    bits = fields.get("bits", fields.get("w_bit"))
    if bits != 4:
        raise _unread(f"quant_method {method!r}, bits {bits!r}")
    if str(fields.get("pack_dtype") or "int32") != "int32":
        raise _unread(f"quant_method {method!r}, pack_dtype {fields['pack_dtype']!r}")
    return layout


def _unread(what: str) -> InputError:
    return InputError(
        f"config.json: the weights are stored quantised ({what}), a layout that is not read here."
        " Read are 4 bits of GPTQ ('gptq', 'gptq_v2') and AWQ ('gemm'): load such a checkpoint, or"
        " the unquantised one with quantize='int8' or 'int4' to make it small"
    )


def whole_matrices(
    stored: Mapping[str, Stored], layout: str | None, kept: bool
) -> dict[str, Stored | StoredInt4]:
    """Every tensor by the name that it has in an unquantised checkpoint."""
    plain = {key: tensor for key, tensor in stored.items() if tensor.dtype.is_floating_point}
    if layout is None:
        _refuse_integers(stored)
        return {**plain}
    layers = [key.removesuffix(".qweight") for key in stored if key.endswith(".qweight")]
    parts = {layer + part for layer in layers for part in _PARTS}
    _refuse_integers({key: tensor for key, tensor in stored.items() if key not in parts})
    others = [tensor for key, tensor in plain.items() if key not in parts]
    largest = max(others, key=lambda tensor: tensor.size, default=None)
    found: dict[str, Stored | StoredInt4] = {tensor.key: tensor for tensor in others}
    for layer in layers:
        key = f"{layer}.weight"
        if key in found:
            raise InputError(f"the checkpoint has both {key!r} and {layer + '.qweight'!r}")
        qweight, qzeros, scales = (_part(stored, layer + part) for part in _PARTS[:3])
        dtype = scales.dtype if largest is None else largest.dtype
        g_idx = None if layout == "gemm" else stored.get(f"{layer}.g_idx")
        matrix = StoredInt4(key, dtype, layout, kept, qweight, qzeros, scales, g_idx)
        _check_parts(matrix)
        found[key] = matrix
    return found


def _part(stored: Mapping[str, Stored], key: str) -> Stored:
    if key not in stored:
        raise InputError(
            f"the checkpoint lacks tensor {key!r}, without which a quantised matrix cannot be read:"
            " its shards are incomplete; download it again"
        )
    return stored[key]


def _check_parts(matrix: StoredInt4) -> None:
    if len(matrix.qweight.shape) != 2 or len(matrix.scales.shape) != 2:
        raise InputError(
            f"tensor {matrix.qweight.key!r} has shape {matrix.qweight.shape}, its scales"
            f" {matrix.scales.shape}: expected two dimensions each; download it again"
        )
    (rows, columns), count = matrix.shape, matrix.scales.shape[0]
    expected: dict[Stored, tuple[int, ...]] = {
        matrix.qzeros: (count, rows // 8),
        matrix.scales: (count, rows),
    }
    if matrix.g_idx is not None:
        expected[matrix.g_idx] = (columns,)
    for tensor, shape in expected.items():
        if tensor.shape != shape:
            raise InputError(
                f"tensor {tensor.key!r} has shape {tensor.shape}; beside"
                f" {matrix.qweight.key!r} of shape {matrix.qweight.shape} expected is {shape}:"
                " are these other bits than config.json says?"
            )
    if not count or (matrix.g_idx is None and columns % count):
        raise InputError(
            f"tensor {matrix.scales.key!r} has {count} groups for {columns} columns, and no g_idx"
            " says which columns belong to which: download the checkpoint again"
        )


def _refuse_integers(stored: Mapping[str, Stored]) -> None:
    for tensor in stored.values():
        if not tensor.dtype.is_floating_point:
            raise InputError(
                f"tensor {tensor.key!r} in {tensor.file} is stored as {tensor.dtype}, which no"
                " weight is. If the checkpoint is quantised, config.json must say how"
                " (quantization_config; older tools wrote quantize_config.json instead)"
            )


def _read(stored: Stored) -> Tensor:
    whole = torch.empty(stored.shape, dtype=stored.dtype)
    stored.read_into(whole)
    return whole


def _nibbles(packed: Int[Tensor, "A P"]) -> UInt8[Tensor, "A P 8"]:
    """The eight numbers in each int32, the one in the lowest bits first."""
    octets = packed.view(torch.uint8).unflatten(-1, (-1, 4))
    return torch.stack((octets & 15, octets >> 4), dim=-1).flatten(-2)

"""Weights in 8 or 4 bits, unpacked where they are multiplied; activations stay as they are.

A pass of a diffusion model multiplies every matrix by hundreds of positions, so that unpacking it
first costs little beside the product, on any device and in any dtype. What is packed are the
matrices of the layers and the head. The embedding table never is: decoding happens in its space.
Neither are norms and routers.

Dimension names: O rows and I columns of a matrix, X matrices of a stack, S groups of columns.
"""

import re
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from xpredflow.errors import InputError, unknown_name

Quantize = Literal["int8", "int4"]
GROUPS = (128, 64, 32, 16, 8)  # columns with a scale of their own in int4: the largest that divides
UNPACKED_AT_ONCE = 2**24  # weights that are held unpacked beside the packed ones


class PackedWeight(nn.Module):
    """A matrix, or a stack of them, in `bits` bits; `shape` is that of the weights.

    int8 has one scale per row. int4 has a scale and an offset per group of columns, and two weights
    in a byte.
    """

    values: Tensor
    scale: Tensor
    offset: Tensor | None

    def __init__(self, weight: Float[Tensor, "*X O I"], bits: int) -> None:
        super().__init__()
        self.shape, self.bits, self.dtype = tuple(weight.shape), bits, weight.dtype
        packed = _to_int8(weight.detach()) if bits == 8 else _to_int4(weight.detach())
        for name, tensor in zip(("values", "scale", "offset"), packed, strict=True):
            self.register_buffer(name, tensor)

    def __getitem__(self, index: int | slice | Tensor) -> Float[Tensor, "..."]:
        """Some rows of a matrix or some matrices of a stack, unpacked."""
        offset = None if self.offset is None else self.offset[index]
        return _unpacked(self.values[index], self.scale[index], offset).to(self.dtype)

    def unbind(self, dim: int = 0) -> "PackedWeight":
        """The matrices of a stack one by one, each unpacked when it is taken."""
        return self


class PackedLinear(nn.Module):
    """In place of nn.Linear without a bias."""

    def __init__(self, weight: Float[Tensor, "O I"], bits: int) -> None:
        super().__init__()
        self.weight = PackedWeight(weight, bits)
        self.out_features, self.in_features = weight.shape

    def forward(self, x: Float[Tensor, "*S I"]) -> Float[Tensor, "*S O"]:
        # a few rows at a time: the head alone would be 2 GB in fp32
        step = max(1, UNPACKED_AT_ONCE // self.in_features)
        starts = range(0, self.out_features, step)
        parts = [F.linear(x, self.weight[start : start + step].to(x.dtype)) for start in starts]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)


def _to_int8(weight: Float[Tensor, "*X O I"]) -> tuple[Tensor, Tensor, None]:
    wide = weight.float()
    scale = wide.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 127
    return (wide / scale).round().clamp(-127, 127).to(torch.int8), scale, None


def _to_int4(weight: Float[Tensor, "*X O I"]) -> tuple[Tensor, Tensor, Tensor]:
    grouped = weight.float().unflatten(-1, (-1, group_size(weight.shape[-1])))
    low, high = grouped.amin(-1, keepdim=True), grouped.amax(-1, keepdim=True)
    scale = (high - low).clamp(min=1e-12) / 15
    numbers = ((grouped - low) / scale).round().clamp(0, 15).to(torch.uint8)
    return numbers[..., ::2] | numbers[..., 1::2] << 4, scale, low


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
    """The name of a format, checked."""
    if quantize is not None and quantize not in get_args(Quantize):
        raise unknown_name("quantize", quantize, get_args(Quantize))
    return quantize  # type: ignore[return-value]


def is_packable(name: str, tensor: Tensor, table: Tensor, precise: str) -> bool:
    """Whether a tensor of a model is one of the matrices that are packed."""
    return tensor.ndim > 1 and tensor is not table and not re.search(precise, name)


def pack(model: nn.Module, name: str, quantize: Quantize, head: nn.Module) -> None:
    """Put a packed weight in the place of a parameter; the head always has 8 bits.

    The head decides between close tokens, and is a small share of a large model.
    """
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    weight = getattr(module, leaf)
    bits = 8 if module is head or quantize == "int8" else 4
    if isinstance(module, nn.Linear):
        parent, _, own = owner.rpartition(".")
        setattr(model.get_submodule(parent), own, PackedLinear(weight, bits))
        return
    delattr(module, leaf)
    setattr(module, leaf, PackedWeight(weight, bits))


def refuse_packed_layout(config: dict) -> None:
    """Checkpoints that are stored packed by other tools (GPTQ, AWQ, FP8, ...) are not read."""
    stored = config.get("quantization_config")
    if not stored:
        return
    method = stored.get("quant_method", "unknown") if isinstance(stored, dict) else stored
    raise InputError(
        f"config.json: the weights are stored quantised (quant_method {method!r}), a layout that is"
        " not read here: load the unquantised checkpoint, with quantize='int8' or 'int4' to make it"
        " small"
    )


def refuse_quantised(model: object, what: str) -> None:
    """Packed weights are for decoding alone."""
    kind: str | None = getattr(model, "quantized", None)
    if kind is not None:
        raise InputError(
            f"the model was loaded with quantize={kind!r} and cannot be {what}: load it without"
        )

"""What weights are loaded as where it is left to the machine (dtype='auto').

The one place that decides it, from what is stored, the memory that is free and what the processor
multiplies fast. Of the formats that fit the first is taken: as exact as stored where possible.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from xpredflow.models.int4_layouts import StoredInt4
from xpredflow.models.machine import free_bytes, multiplies_bfloat16
from xpredflow.models.quantize import Quantize
from xpredflow.models.shards import Stored

AUTO = "auto"
USED_SHARE = 0.9  # of the free memory; the rest is left to others
WORKING_BYTES = 500_000_000  # what decoding a row takes beside the weights, roughly
PACKED_BYTES: dict[Quantize, float] = {"int8": 1.01, "int4": 0.56}  # of a weight, with its scales


@dataclass(frozen=True)
class Format:
    """A dtype of the weights, and the format of the matrices where they are packed."""

    dtype: torch.dtype
    quantize: Quantize | None = None

    def __str__(self) -> str:
        return self.quantize or str(self.dtype).removeprefix("torch.")

    def size(self, weights: int, table: int) -> int:
        """Bytes of so many weights, of which the embedding table is never packed."""
        if self.quantize is None:
            return weights * self.dtype.itemsize
        packed = (weights - table) * PACKED_BYTES[self.quantize]
        return round(table * self.dtype.itemsize + packed)


@dataclass(frozen=True)
class Choice:
    """A format, and why in one line."""

    format: Format
    why: str


def choose(
    stored: Iterable[Stored | StoredInt4], table: int, device: torch.device, processes: int = 1
) -> Choice:
    """The format for tensors of a checkpoint whose embedding table has so many entries.

    Of several processes with a device each, every one holds the table and its part of the rest.
    """
    sizes = [(tensor.size, tensor.dtype) for tensor in stored]
    weights, kind = sum(size for size, _ in sizes), max(sizes, key=lambda pair: pair[0])[1]
    if device.type != "cpu":  # processes on a CPU share its memory
        weights = table + (weights - table) // processes
    formats = _formats(kind, device)
    free = free_bytes(device)
    if free is None:
        return Choice(formats[0], f"weights in {formats[0]}; free memory is unknown here")
    room = USED_SHARE * free - WORKING_BYTES
    fitting = [form for form in formats if form.size(weights, table) <= room]
    chosen = fitting[0] if fitting else formats[-1]
    said = f"weights in {chosen}, {chosen.size(weights, table) / 1e9:.1f} GB"
    said += f"; {free / 1e9:.1f} GB are free on {device}"
    if chosen is not formats[0]:
        said += f", and {formats[0]} takes {formats[0].size(weights, table) / 1e9:.1f}"
    return Choice(chosen, f"{said} (--dtype or --quantize choose another)")


def _formats(stored: torch.dtype, device: torch.device) -> list[Format]:
    """What may be chosen, the best first."""
    on_cpu = device.type == "cpu"
    # CPUs compute slowly in float16 and overflow in it; bfloat16 alone would lose some of its bits
    half = torch.float16 if stored == torch.float16 and not on_cpu else torch.bfloat16
    plain = [Format(half)]
    # a CPU without instructions for bfloat16 takes several times as long as in float32
    if stored != half or (on_cpu and not multiplies_bfloat16()):
        plain = [Format(torch.float32), *plain]
    return [*plain, Format(half, "int8"), Format(half, "int4")]

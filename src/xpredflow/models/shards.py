"""Reading safetensors files in pieces through one small buffer.

The safetensors library maps whole files into memory, and mapped pages count as the process's own
until the mapping goes: a load would peak at twice the weights. Plain reads do not.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from mmap import mmap
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.files import is_finite, read_object

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
PACKED = {"I32": torch.int32}  # several numbers in one, see int4_layouts
NAMES = {dtype: name for name, dtype in DTYPES.items()}
CHUNK = 2**20  # small: what is held beside the weights leaves holes between them
LONGEST_HEADER = 100_000_000  # the limit of the format
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True)
class Stored:
    """One tensor in a file: what it is and which bytes hold it."""

    key: str
    file: Path
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        """How many values it has."""
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """Where its last byte ends."""
        return self.start + self.size * self.dtype.itemsize

    def rows(self, start: int, stop: int) -> "Stored":
        """A part of it: the entries of its first dimension from `start` to before `stop`."""
        size = math.prod(self.shape[1:]) * self.dtype.itemsize
        shape = (stop - start, *self.shape[1:])
        return replace(self, shape=shape, start=self.start + start * size)

    def read_into(self, target: Tensor) -> None:
        """Copy the values into a contiguous tensor of this shape, of any dtype and device."""
        for part, values in self._pieces(target):
            part.copy_(values)

    def equals(self, target: Tensor) -> bool:
        """Whether a contiguous tensor of this shape has these values, in its own dtype."""
        pieces = self._pieces(target)
        return all(torch.equal(part, values.to(part)) for part, values in pieces)

    def _pieces(self, target: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Parts of the target one after the other, each beside the values stored for it."""
        flat, size = target.view(-1), self.dtype.itemsize
        # not from the heap: there it would leave holes between the tensors, a fifth of their size
        buffer = mmap(-1, max(1, min(CHUNK, flat.numel() * size)))
        with self.file.open("rb", buffering=0) as file:
            file.seek(self.start)
            for done in range(0, flat.numel(), CHUNK // size):
                count = min(CHUNK // size, flat.numel() - done)
                self._fill(file, memoryview(buffer)[: count * size])
                values = torch.frombuffer(buffer, dtype=self.dtype, count=count)
                if not is_finite(values):
                    raise InputError(
                        f"tensor {self.key!r} in {self.file} holds NaN or infinity: the weights"
                        " are damaged, or stored in another dtype than their header says;"
                        " download them again"
                    )
                yield flat[done : done + count], values

    def _fill(self, file: Any, buffer: memoryview) -> None:
        while len(buffer):
            count = file.readinto(buffer)
            if not count:
                raise InputError(f"{self.file} ended inside tensor {self.key!r}: download it again")
            buffer = buffer[count:]


def stored_tensors(directory: Path) -> dict[str, Stored]:
    """Every tensor of a checkpoint by name, in the order in which the files hold them."""
    found: dict[str, Stored] = {}
    for file in _files(directory):
        for stored in read_header(file):
            if stored.key in found:
                other = found[stored.key].file.name
                raise InputError(f"tensor {stored.key!r} is in both {other} and {file.name}")
            found[stored.key] = stored
    return found


def read_header(file: Path) -> list[Stored]:
    """The tensors of one file, after checking that the file is as long as its header says."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size - 8, LONGEST_HEADER):
            raise InputError(f"{file} is truncated or corrupt (bad header): download it again")
        text = stream.read(length)
    try:
        entries = _unique_keys(file, text)
        entries.pop("__metadata__", None)
        tensors = [_entry(file, key, entry, 8 + length) for key, entry in entries.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} is corrupt (unreadable header): download it again") from error
    tensors.sort(key=lambda stored: (stored.start, stored.end))
    _check_cover(file, tensors, 8 + length, size)
    return tensors


def _unique_keys(file: Path, text: bytes) -> dict[str, Any]:
    """The header; of two entries with one name a reader would have to guess which is meant."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = next(
                key for key, count in Counter(key for key, _ in pairs).items() if count > 1
            )
            raise InputError(f"{file} is corrupt: its header names {twice!r} twice")
        return found

    entries = json.loads(text, object_pairs_hook=unique)
    if not isinstance(entries, dict):
        raise TypeError
    return entries


def _check_cover(file: Path, tensors: list["Stored"], first: int, size: int) -> None:
    """Every byte belongs to one tensor, as the format wants it: none to two, none to nobody."""
    end, before = first, "the header"
    for stored in tensors:
        if stored.start != end:
            how = "overlap" if stored.start < end else "leave a hole between them"
            raise InputError(f"{file} is corrupt: {before} and tensor {stored.key!r} {how}")
        end, before = stored.end, f"tensor {stored.key!r}"
    if size != end:
        raise InputError(
            f"{file} is truncated or corrupt: it has {size} bytes, its header promises {end}; "
            "download it again"
        )


def _entry(file: Path, key: str, entry: dict[str, Any], base: int) -> Stored:
    known = DTYPES | PACKED
    if entry["dtype"] not in known:
        raise InputError(
            f"tensor {key!r} in {file} is stored as {entry['dtype']}; expected one of "
            f"{', '.join(DTYPES)}, or {', '.join(PACKED)} where weights are quantised"
        )
    dtype, shape = known[entry["dtype"]], tuple(map(_whole, entry["shape"]))
    start, end = map(_whole, entry["data_offsets"])
    if start < 0 or end - start != math.prod(shape) * dtype.itemsize:
        raise InputError(
            f"{file} is corrupt: tensor {key!r} of shape {shape} cannot have {end - start} bytes; "
            "download it again"
        )
    return Stored(key, file, dtype, shape, base + start)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(value)
    return value


def _files(directory: Path) -> list[Path]:
    has_index = (directory / INDEX).is_file()
    # some tools leave a file without a single tensor beside the shards
    if (directory / SINGLE).is_file() and not (has_index and not read_header(directory / SINGLE)):
        return [directory / SINGLE]
    if not has_index:
        raise _no_weights(directory)
    index = read_object(directory / INDEX, "download it again").get("weight_map")
    if not isinstance(index, dict) or not index or not all(map(_is_file_name, index.values())):
        raise InputError(
            f"{directory / INDEX} is not a weight index: expected a weight_map from tensors to"
            " names of files beside it; download it again"
        )
    files = [directory / name for name in sorted(set(index.values()))]
    absent = [file.name for file in files if not file.is_file()]
    if absent:
        raise InputError(
            f"{INDEX} lists {', '.join(absent)}, but {directory} has no such file: download it"
        )
    return files


def _is_file_name(name: Any) -> bool:
    """Of a file in the same directory, not of one that a checkpoint would reach outside it."""
    return isinstance(name, str) and Path(name).name == name and name.endswith(".safetensors")


def _no_weights(directory: Path) -> InputError:
    pickles = sorted(file.name for pattern in PICKLES for file in directory.glob(pattern))
    if pickles:
        return InputError(
            f"{directory} has only pickle weights ({', '.join(pickles[:3])}). They are never "
            "loaded, because a pickle can run code: convert them to safetensors"
        )
    return InputError(
        f"{directory} has no weights: expected {SINGLE}, or {INDEX} with the shards it lists"
    )

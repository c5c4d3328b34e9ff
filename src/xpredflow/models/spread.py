"""Weights that are spread over several processes: read into the parts, written from them.

torch's `fully_shard` leaves each process some rows of every parameter (a DTensor). No process ever
holds the whole model: a checkpoint is read from its files straight into the rows, and written
tensor by tensor. What one process holds alone goes the same ways.
"""

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from xpredflow.models.base import MaskedDiffusionModel, Place
from xpredflow.models.loader import not_tied
from xpredflow.models.shards import Stored


def own_part(tensor: Tensor) -> Tensor:
    """The rows that this process holds, as a plain tensor on the same memory."""
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).detach()


def own_rows(tensor: Tensor) -> slice:
    """Which rows those are."""
    count = tensor.shape[0]
    if not isinstance(tensor, DTensor):
        return slice(0, count)
    size = -(-count // tensor.device_mesh.size())
    start = min(tensor.device_mesh.get_local_rank() * size, count)
    return slice(start, min(start + size, count))


def whole_tensor(tensor: Tensor) -> Tensor:
    """Put together from all processes, which must all ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def materialise(
    root: nn.Module, model: MaskedDiffusionModel, places: Mapping[str, Place], device: torch.device
) -> None:
    """Give what is on the meta device its values: this process's rows, read from the files.

    `model` is a part of `root`, which has been sharded as a whole; `places` are the model's from
    before anything was added to it. What has values already (adapters) keeps them.
    """
    stored = model.unread
    if stored is None:
        return
    kept = {name: own_part(t).clone() for name, t in _tensors(root).items() if not t.is_meta}
    root.to_empty(device=device)
    for name, tensor in _tensors(root).items():
        if name in kept:
            own_part(tensor).copy_(kept[name])
    tensors = {plain_name(name): tensor for name, tensor in _tensors(model).items()}
    for key, (name, row) in places.items():
        _read(stored[key], tensors[name], row)
    for key, name in model.copies().items():
        rows = own_rows(tensors[name])
        part = stored[key].rows(rows.start, rows.stop) if key in stored else None
        if part is not None and not part.equals(own_part(tensors[name])):
            raise not_tied(key, name)
    model.unread = None


def _read(stored: Stored, tensor: Tensor, row: int | None) -> None:
    """A stored tensor into our own rows; one that belongs to a stack is read by one process."""
    part, rows = own_part(tensor), own_rows(tensor)
    if row is None:
        stored.rows(rows.start, rows.stop).read_into(part)
    elif rows.start <= row < rows.stop:
        stored.read_into(part[row - rows.start])


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def plain_name(name: str) -> str:
    """What a tensor was called before its matrix got an adapter."""
    return name.replace(".base_layer.", ".")


def by_key(
    places: Mapping[str, Place], value: Callable[[str], Tensor]
) -> Iterator[tuple[str, Tensor]]:
    """A checkpoint's tensors one after the other, on the CPU, under their published names.

    `value` gives a tensor of ours by its name. Each is asked for once, and gone before the next.
    """
    at, found = "", torch.empty(0)
    for key, (name, row) in places.items():
        if name != at:
            at, found = name, value(name).detach().cpu()
        yield key, found if row is None else found[row]

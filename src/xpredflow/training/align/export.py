"""The aligned weights as they are written: tensor by tensor, in the dtype of the files.

Neither the host nor any process holds them all: what is sharded is put together one tensor at a
time, and adapters are added to the matrices of the checkpoint that they were trained beside.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from xpredflow.models import MaskedDiffusionModel, save
from xpredflow.models.base import Place
from xpredflow.models.defaults import aligned_defaults
from xpredflow.models.module_adapter import Wrapped
from xpredflow.models.spread import by_key, whole_tensor
from xpredflow.training.align.lora import Adapter, adapters_of
from xpredflow.training.align.sharding import Placement

Tensors = Iterator[tuple[str, Tensor]]


def export(
    model: MaskedDiffusionModel,
    places: Mapping[str, Place],
    placement: Placement,
    dtype: torch.dtype,
    directory: Path,
) -> None:
    """Write what was trained; all processes call it, the first one writes.

    `places` are those of the model from before it got adapters.
    """
    adapters, writes = adapters_of(model), placement.share.rank == 0
    if adapters:
        tensors = _merged(placement, places, adapters, dtype) if writes else iter(())
    else:
        tensors = _trained(model, places, dtype)
    if not writes:
        for _ in tensors:  # put together with the others, and dropped
            pass
        return
    if isinstance(model, Wrapped):
        model, tensors = _filled(placement.start.load().cpu(), tensors, dtype), None
    model.defaults = aligned_defaults(model.defaults)
    save(model, directory, tensors=tensors)


def _trained(
    model: MaskedDiffusionModel, places: Mapping[str, Place], dtype: torch.dtype
) -> Tensors:
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    if isinstance(model, Wrapped):  # whose tied tensors have several names
        tensors = model.state_dict()

    def value(name: str) -> Tensor:
        return whole_tensor(_written(model, name, tensors[name].detach(), dtype))

    return by_key(places, value)


def _merged(
    placement: Placement,
    places: Mapping[str, Place],
    adapters: Mapping[str, Adapter],
    dtype: torch.dtype,
) -> Tensors:
    """The start's tensors, from its files where there are any, with the adapters in them."""
    source = placement.start.shell()
    if source is None or source.unread is None:
        source = placement.start.load().cpu()
    state = source.state_dict()
    for key, (name, row) in places.items():
        if source.unread is None:
            tensor = state[name] if row is None else state[name][row]
        else:
            stored = source.unread[key]
            tensor = torch.empty(stored.shape, dtype=stored.dtype)
            stored.read_into(tensor)
        if name in adapters:
            tensor = adapters[name].merged(tensor)
        yield key, _written(source, name, tensor, dtype)


def _written(model: MaskedDiffusionModel, name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """In the dtype of the files; what is precise stays so."""
    return tensor if re.search(model.precise, name) else tensor.to(dtype)


def _filled(
    model: MaskedDiffusionModel, tensors: Tensors, dtype: torch.dtype
) -> MaskedDiffusionModel:
    """A foreign module writes itself, as a whole."""
    model.convert(dtype)
    state = model.state_dict()
    with torch.no_grad():
        for name, tensor in tensors:
            state[name].copy_(tensor)
    return model

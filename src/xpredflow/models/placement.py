"""Layers over several devices, one device after the other (device_map).

The embedding table, the last norm and the head stay on the first device: decoding happens there,
and what travels between devices is one hidden state per position, never logits. Which layers go
where is accelerate's choice, within what is free on each device and evenly where all would fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from xpredflow.errors import InputError
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.machine import free_bytes
from xpredflow.models.precision import PACKED_BYTES, USED_SHARE
from xpredflow.models.quantize import Quantize

UNKNOWN = 2**62  # bytes of a device that does not say how many are free


@dataclass(frozen=True)
class Placement:
    """The device of every layer; `prefixes` are the names of the layers' modules."""

    first: torch.device
    layers: list[torch.device]
    prefixes: list[str]

    def of(self, name: str) -> torch.device:
        """Where a tensor goes."""
        for prefix, device in zip(self.prefixes, self.layers, strict=True):
            if name.startswith(prefix):
                return device
        return self.first

    def connect(self, model: MaskedDiffusionModel) -> None:
        """What a layer is given comes to its device first."""
        model.layer_devices = self.layers
        model.placed = f"{self}; the table and the head on {self.first}"
        if set(self.layers) == {self.first}:
            return
        from accelerate.hooks import AlignDevicesHook, add_hook_to_module

        for layer, device in zip(model.trunk()[0], self.layers, strict=True):
            add_hook_to_module(layer, AlignDevicesHook(execution_device=device))

    def __str__(self) -> str:
        runs = [
            (device, [i for i, _ in run])
            for device, run in groupby(enumerate(self.layers), _second)
        ]
        return ", ".join(f"layers {run[0]} to {run[-1]} on {device}" for device, run in runs)


def _second(pair: tuple[int, torch.device]) -> torch.device:
    return pair[1]


def every_device(kind: str) -> list[str]:
    """All devices of a kind that this machine has."""
    if kind in ("cpu", "mps"):
        return [kind]
    return [f"{kind}:{i}" for i in range(torch.get_device_module(kind).device_count())]


def place_layers(
    model: MaskedDiffusionModel,
    devices: Sequence[torch.device],
    dtype: torch.dtype,
    quantize: Quantize | None = None,
) -> Placement:
    """Where the layers of a model on the meta device go, if its weights are kept in this format."""
    layers = nn.ModuleList(model.trunk()[0])
    names = {id(module): f"{name}." for name, module in model.named_modules()}
    prefixes = [names[id(layer)] for layer in layers]
    if len(devices) == 1:
        return Placement(devices[0], [devices[0]] * len(layers), prefixes)
    try:
        from accelerate import infer_auto_device_map
    except ImportError:
        raise InputError(
            "device_map needs the package 'accelerate': pip install 'xpredflow[devices]'"
        ) from None
    everything, of_layers = _size(model), _size(layers)
    largest = max(_size(layer) for layer in layers)
    # accelerate counts a weight as the 4 bytes that it has on the meta device
    scale = 4 / (PACKED_BYTES[quantize] if quantize else dtype.itemsize)
    free = [int(USED_SHARE * (free_bytes(device) or UNKNOWN) * scale) for device in devices]
    ends, even = everything - of_layers, everything // len(devices) + largest // 2
    evenly = [min(even, room) for room in free[:-1]] + free[-1:]
    chosen: list[Any] = []
    for rooms in (evenly, free):  # as much as fits on each, if it does not go evenly
        # accelerate's first device is an empty one: there it would keep room for a layer free
        rooms = [0, max(0, rooms[0] - ends), *rooms[1:]]
        found = infer_auto_device_map(
            layers,
            max_memory=dict(enumerate(rooms)),
            no_split_module_classes=[type(layers[0]).__name__],
            clean_result=False,
        )
        chosen = [found.get(str(i), "nowhere") for i in range(len(layers))]
        if all(isinstance(place, int) for place in chosen):
            break
    else:
        needed, there = everything / scale / 1e9, sum(free) / scale / 1e9
        raise InputError(
            f"the weights take {needed:.1f} GB, and {there:.1f} GB are free on"
            f" {', '.join(map(str, devices))}: add devices, or load them packed (quantize='int8')"
        )
    return Placement(devices[0], [devices[place - 1] for place in chosen], prefixes)  # type: ignore[operator]


def _size(module: nn.Module) -> int:
    """Bytes of the weights as fp32."""
    tensors: dict[str, Tensor] = module.state_dict()
    return 4 * sum(tensor.numel() for tensor in tensors.values())

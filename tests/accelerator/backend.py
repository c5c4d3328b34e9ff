"""Makes the simulated accelerator known to torch: its kernels, its autocast, its module."""

from functools import partial
from typing import Any

import torch
from simulated import NAME, run
from torch import Tensor
from torch.utils import backend_registration

_AUTOCAST = "AutocastPrivateUse1"


class _Module(backend_registration._DummyBackendModule):
    """torch.sim: what torch asks of a kind of device."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def set_device(self, index: int) -> None:
        """There is one."""


_LIBRARIES: list[torch.library.Library] = []
_PRODUCTS = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "scaled_dot_product_attention")
# torch makes these by resizing an empty tensor, which a shell of ours cannot follow.
_RESIZING = (
    *("arange", "arange.start", "arange.start_step", "linspace", "eye", "eye.m"),
    *("randperm", "randperm.generator"),
)


def register() -> torch.device:
    """Make the device known to torch, once in a process."""
    if not _LIBRARIES:
        backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
        everything = torch.library.Library("_", "IMPL")
        everything.fallback(run, "PrivateUse1")  # factories, and whatever has no tensor of ours
        products = torch.library.Library("aten", "IMPL")
        for name in _PRODUCTS:
            products.impl(name, _autocast(getattr(torch.ops.aten, name).default), _AUTOCAST)
        for name in _RESIZING:
            packet, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet), overload or "default")
            products.impl(name, partial(run, op), "PrivateUse1")
        autocast = torch.library.Library("_", "IMPL")
        autocast.fallback(torch.library.fallthrough_kernel, _AUTOCAST)
        _LIBRARIES.extend((everything, products, autocast))
    return torch.device(NAME, 0)


def _autocast(op: Any) -> Any:
    """Matrix products in autocast's dtype, as on every accelerator."""

    def lowered(*args: Any, **kwargs: Any) -> Any:
        dtype = torch.get_autocast_dtype(NAME)

        def cast(leaf: Any) -> Any:
            wide = (
                isinstance(leaf, Tensor)
                and leaf.is_floating_point()
                and leaf.dtype != torch.float64
            )
            return leaf.to(dtype) if wide else leaf

        with torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _AUTOCAST))
        ):
            return op(*map(cast, args), **{name: cast(v) for name, v in kwargs.items()})

    return lowered

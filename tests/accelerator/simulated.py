"""A simulated accelerator: real values on the CPU, behind a device of its own with a GPU's rules.

Its tensors refuse to be mixed with CPU tensors where CUDA's do: a CPU tensor without dimensions may
enter a pointwise operation, and CPU indices may index; nothing else. What makes the host wait, what
is copied to the device and what would be a kernel launch is counted:

    with counting() as counts:
        decode()
    assert counts.syncs <= 2, counts
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from counts import OPEN, place_in_source
from torch import Tensor

NAME = "sim"
# Pointwise in all but their tag: CUDA takes a CPU tensor without dimensions here too.
_TAKES_SCALARS = {"where", "masked_fill", "masked_fill_", "fill_", "fill", "copy_", "lerp", "lerp_"}
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
_WAITING = {
    *("nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount"),
    *("equal", "histc", "_local_scalar_dense"),
}
_ALLOCATING = {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided"}
_FREE = {
    *_ALLOCATING,
    "lift_fresh",
    "_unsafe_view",
    "detach",
    "_local_scalar_dense",
    "is_same_size",
}


class SimulatedTensor(Tensor):
    """On the simulated device; `data_on_cpu` are its values."""

    data_on_cpu: Tensor

    @staticmethod
    def __new__(cls, values: Tensor) -> "SimulatedTensor":
        shell = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=torch.device(NAME, 0),
        )
        shell.data_on_cpu = values
        return shell

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(op, *args, **(kwargs or {}))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Saved with its values; read back on the CPU, as all that the package loads is."""
        return self.data_on_cpu.detach().__reduce_ex__(protocol)

    def tolist(self) -> Any:
        """The values on the host, for which it waits."""
        return self.cpu().tolist()

    @property
    def data(self) -> Tensor:  # type: ignore[override]
        """The tensor without its history; what is set replaces the values too."""
        return self.detach()

    @data.setter
    def data(self, new: "SimulatedTensor") -> None:
        Tensor.data.__set__(self, new)  # type: ignore[attr-defined]
        self.data_on_cpu = new.data_on_cpu

    def new_tensor(self, data: Any, **options: Any) -> Tensor:
        """torch cannot make it for a device that lives in Python."""
        return tensor(data, device=self.device, **{"dtype": self.dtype, **options})

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"{self.data_on_cpu!r} on {NAME}"


def run(op: Any, *args: Any, **kwargs: Any) -> Any:
    """One operation of which the device is part: checked, counted, computed on the CPU."""
    name = op._schema.name.removeprefix("aten::")
    leaves = [*_leaves(args), *_leaves(kwargs.values())]
    ours = [leaf for leaf in leaves if isinstance(leaf, SimulatedTensor)]
    theirs = [leaf for leaf in leaves if type(leaf) is not SimulatedTensor and _is_tensor(leaf)]
    target = kwargs.get("device")
    to_device = bool(ours) if target is None else torch.device(target).type == NAME
    if name in ("_to_copy", "copy_", "_copy_from", "_copy_from_and_resize"):
        _count_copy(name, args, ours, theirs, to_device)
    else:
        _check(op, name, args, ours, theirs)
        _check_generators(name, leaves)
        _count(op, name, args, kwargs, theirs)
    values = op(*_mapped(_on_cpu, args), **{n: _mapped(_on_cpu, v) for n, v in kwargs.items()})
    return _returned(op, args, kwargs, values, to_device)


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _leaves(value)
        else:
            yield value


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Operations take and return lists of tensors at most."""
    if isinstance(value, list | tuple):
        return [_mapped(function, one) for one in value]
    return function(value)


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, Tensor)


def _on_cpu(leaf: Any) -> Any:
    if isinstance(leaf, SimulatedTensor):
        return leaf.data_on_cpu
    is_ours = isinstance(leaf, torch.device) and leaf.type == NAME
    return torch.device("cpu") if is_ours else leaf


def _on_device(leaf: Any) -> Any:
    return SimulatedTensor(leaf) if _is_tensor(leaf) else leaf


def _returned(op: Any, args: Any, kwargs: Any, values: Any, to_device: bool) -> Any:
    """What was changed in place is returned as it is, everything new on the device."""
    declared = op._schema.returns
    many = len(declared) > 1
    out = []
    for i, value in enumerate(values if many else [values]):
        alias = declared[i].alias_info if i < len(declared) else None
        if alias is not None and alias.is_write:
            out.append(_written(op, args, kwargs, alias))
        else:
            out.append(_mapped(_on_device, value) if to_device else value)
    return tuple(out) if many else out[0]


def _written(op: Any, args: Any, kwargs: Any, alias: Any) -> Any:
    for i, argument in enumerate(op._schema.arguments):
        info = argument.alias_info
        if info is not None and info.is_write and info.before_set == alias.before_set:
            changed = args[i] if i < len(args) else kwargs[argument.name]
            if isinstance(changed, SimulatedTensor):
                same = changed.shape == changed.data_on_cpu.shape
                assert same, f"{op} changed a tensor's shape in place"
            return changed
    raise AssertionError(f"{op} returns what it was not given")


def _check(op: Any, name: str, args: Any, ours: list, theirs: list) -> None:
    if not ours or not theirs:
        return
    if name in _INDEXING and isinstance(args[0], SimulatedTensor):
        values = args[2] if len(args) > 2 else None
        theirs = [values] if _is_tensor(values) and type(values) is not SimulatedTensor else []
        allowed = True
    else:
        allowed = torch.Tag.pointwise in op.tags or name in _TAKES_SCALARS
    for tensor in theirs:
        if tensor.ndim or not allowed:
            raise RuntimeError(
                f"{op}: expected all tensors to be on the same device, but found at least two,"
                f" {NAME}:0 and {tensor.device} (shape {tuple(tensor.shape)})"
            )


def _check_generators(name: str, leaves: list) -> None:
    for leaf in leaves:
        if isinstance(leaf, _TorchGenerator) and leaf._cdata not in _GENERATORS:  # type: ignore[attr-defined]
            raise RuntimeError(
                f"{name}: expected a {NAME!r} generator but found one of {leaf.device}"
            )


def _count_copy(name: str, args: Any, ours: list, theirs: list, to_device: bool) -> None:
    if name == "_to_copy":
        moved_up, moved_down = to_device and bool(theirs), not to_device and bool(ours)
    else:  # dst and src; _copy_from names them the other way round
        dst, src = args[:2] if name == "copy_" else (args[1], args[0])
        up, down = isinstance(dst, SimulatedTensor), isinstance(src, SimulatedTensor)
        moved_up, moved_down = up and not down, down and not up
    for counts in OPEN:
        if moved_up:
            counts.uploads[place_in_source(name)] += 1
        elif moved_down:
            counts.waits[place_in_source(name)] += 1
        else:
            counts.kernels[name] += 1


def _count(op: Any, name: str, args: Any, kwargs: Any, theirs: list) -> None:
    if not OPEN:
        return
    waits = name in _WAITING or _selects_by_mask(name, args)
    waits |= name == "repeat_interleave" and kwargs.get("output_size") is None
    views = any(r.alias_info and not r.alias_info.is_write for r in op._schema.returns)
    for counts in OPEN:
        if waits:
            counts.waits[place_in_source(name)] += 1
        if name in _INDEXING and theirs:
            counts.uploads[place_in_source(name)] += 1
        if not views and name not in _FREE:
            counts.kernels[name] += 1


def _selects_by_mask(name: str, args: Any) -> bool:
    """Indexing by a mask asks how many places it has, unless one value fills them all."""
    if name not in _INDEXING:
        return False
    masks = [i for i in args[1] if isinstance(i, SimulatedTensor) and i.dtype == torch.bool]
    filled = len(args) > 2 and args[2].numel() == 1 and len(args[1]) == len(masks) == 1
    return bool(masks) and not filled


# torch makes neither of these for a device that lives in Python; tests put ours in their places.
_TorchGenerator, _torch_tensor = torch.Generator, torch.tensor
_GENERATORS: dict[int, torch.Generator] = {}  # kept, so that no other ever has their addresses


class _AnyGenerator(type(_TorchGenerator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _TorchGenerator)


class Generator(_TorchGenerator, metaclass=_AnyGenerator):
    """torch.Generator of any device: CUDA accepts no draws from another device's."""

    def __new__(cls, device: Any = "cpu") -> Any:
        if torch.device(device).type != NAME:
            return _TorchGenerator(device)
        made = _TorchGenerator()
        _GENERATORS[made._cdata] = made  # type: ignore[attr-defined]
        return made


def tensor(data: Any, *, device: Any = None, **options: Any) -> Tensor:
    """torch.tensor of any device."""
    made = _torch_tensor(data, **options)
    return made if device is None else made.to(device)

"""Strict loading: every tensor of the checkpoint has its place, and every place its tensor."""

import os
import re
from pathlib import Path

import torch
from torch import Tensor, nn

from xpredflow.errors import InputError, unknown_name
from xpredflow.models.base import MaskedDiffusionModel, Place, on_meta
from xpredflow.models.config import check_sizes, check_stored_dtype
from xpredflow.models.defaults import read_defaults
from xpredflow.models.families import family_of
from xpredflow.models.shards import NAMES, Stored, stored_tensors
from xpredflow.models.source import (
    SMALL,
    WEIGHTS,
    check_vocabulary,
    load_tokenizer,
    locate,
    read_config,
)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_SINGLE = ("cpu", "mps", "meta")  # kinds of which a machine has one


def load(
    source: str | Path,
    *,
    dtype: torch.dtype | str | None = None,
    device: torch.device | str | None = None,
    revision: str | None = None,
) -> MaskedDiffusionModel:
    """A checkpoint from a directory or a hub id; `dtype` None keeps what is stored.

    No code of the checkpoint is run, and memory peaks at hardly more than the weights.
    """
    wanted, target = as_dtype(dtype), as_device(device)
    # The small files first: a checkpoint that cannot be read is not worth its download.
    directory = locate(source, revision, SMALL)
    config = read_config(directory)
    family = family_of(config)
    if not Path(source).expanduser().is_dir():
        on_meta(family, config)
    directory = locate(source, revision, WEIGHTS)
    stored = stored_tensors(directory)
    check_sizes(config, {key: tensor.shape for key, tensor in stored.items()})
    check_stored_dtype(config, {NAMES[tensor.dtype] for tensor in stored.values()})
    model = on_meta(family, config)
    fill(model, stored, wanted, target)
    tokenizer = load_tokenizer(directory)
    check_vocabulary(tokenizer, len(model.embedding), directory)
    model.attach(tokenizer)
    model.defaults = read_defaults(directory)
    model.name = str(source) if directory != Path(source).expanduser() else directory.resolve().name
    return model.eval()


def fill(
    model: MaskedDiffusionModel,
    stored: dict[str, Stored],
    dtype: torch.dtype | None,
    device: torch.device,
) -> None:
    """Give a model on the meta device its tensors, one after the other."""
    places, shells = model.places(), model.state_dict()
    check(places, shells, stored, model.ignored)
    if dtype is None:
        check_one_dtype(places, shells, stored, model.precise)
    filled: dict[str, Tensor] = {}
    for key, tensor in stored.items():
        if key not in places:
            continue
        name, row = places[key]
        if name not in filled:
            kind = dtype or tensor.dtype
            if re.search(model.precise, name):
                kind = torch.promote_types(kind, tensor.dtype)
            filled[name] = torch.empty(shells[name].shape, dtype=kind, device=device)
            assign(model, name, filled[name])
        tensor.read_into(filled[name] if row is None else filled[name][row])


def assign(model: nn.Module, name: str, tensor: Tensor) -> None:
    """Put a tensor in the place of a parameter or buffer."""
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    setattr(module, leaf, nn.Parameter(tensor) if leaf in module._parameters else tensor)


def check(
    places: dict[str, Place], shells: dict[str, Tensor], stored: dict[str, Stored], ignored: str
) -> None:
    """Refuse missing, unexpected and mis-shaped tensors, by name."""
    missing = [key for key in places if key not in stored]
    if missing:
        raise InputError(
            f"the checkpoint lacks {_some(missing)}: its shards are incomplete, or config.json "
            "belongs to another checkpoint"
        )
    extra = [key for key in stored if key not in places and not re.search(ignored, key)]
    if extra:
        raise InputError(
            f"the checkpoint has {_some(extra)}, for which this architecture has no place: does "
            "config.json belong to another checkpoint?"
        )
    for key, (name, row) in places.items():
        expected = tuple(shells[name].shape if row is None else shells[name].shape[1:])
        if stored[key].shape != expected:
            raise InputError(
                f"tensor {key!r} has shape {stored[key].shape}; config.json asks for {expected}"
            )


def check_one_dtype(
    places: dict[str, Place], shells: dict[str, Tensor], stored: dict[str, Stored], precise: str
) -> None:
    """Matrices of several dtypes cannot be multiplied as stored; norms and routers may differ."""
    matrices = [
        stored[key]
        for key, (name, _) in places.items()
        if shells[name].ndim > 1 and not re.search(precise, name)
    ]
    for tensor in matrices:
        if tensor.dtype != matrices[0].dtype:
            raise InputError(
                f"tensor {tensor.key!r} is stored as {tensor.dtype}, but {matrices[0].key!r} as "
                f"{matrices[0].dtype}: choose one with dtype=, e.g. dtype='bfloat16'"
            )


def _some(keys: list[str]) -> str:
    shown = ", ".join(repr(key) for key in keys[:3])
    return f"{len(keys)} tensor(s): {shown}{', ...' if len(keys) > 3 else ''}"


def as_dtype(dtype: torch.dtype | str | None) -> torch.dtype | None:
    """A floating dtype from its name or itself."""
    if isinstance(dtype, str):
        if dtype not in DTYPES:
            raise unknown_name("dtype", dtype, DTYPES)
        return DTYPES[dtype]
    if dtype is not None and not dtype.is_floating_point:
        raise InputError(f"dtype is {dtype}; expected a floating one: {', '.join(DTYPES)}")
    return dtype


def as_device(device: torch.device | str | None) -> torch.device:
    """A device that exists on this machine; None is the accelerator where there is one.

    A kind of accelerator without a number means this process's own: under torchrun each process of
    a machine takes the one of its LOCAL_RANK.
    """
    named = torch.device(default_device()) if device is None else device
    try:
        found = torch.device(named)
        if found.index is None and found.type not in _SINGLE and "LOCAL_RANK" in os.environ:
            found = torch.device(found.type, int(os.environ["LOCAL_RANK"]))
            torch.get_device_module(found.type).set_device(found.index)
        return torch.empty(0, device=found).device
    # torch raises RuntimeError, AssertionError or others, depending on the backend.
    except Exception as error:
        raise InputError(
            f"device {str(named)!r} cannot be used here ({error}): use device='cpu'"
        ) from error


def default_device() -> str:
    """The kind of device that is used unless told: cuda, else mps, else cpu."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"

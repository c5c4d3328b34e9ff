"""Strict loading: every tensor of the checkpoint has its place, and every place its tensor."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from xpredflow.errors import InputError, unknown_name
from xpredflow.models.base import MaskedDiffusionModel, Place, on_meta
from xpredflow.models.config import check_sizes, check_stored_dtype
from xpredflow.models.defaults import read_defaults
from xpredflow.models.families import family_of
from xpredflow.models.int4_layouts import StoredInt4, layout_of, whole_matrices
from xpredflow.models.masked_lm import is_masked_lm, load_masked_lm
from xpredflow.models.overrides import NO_OVERRIDES, Overrides, completed
from xpredflow.models.precision import AUTO, choose
from xpredflow.models.quantize import (
    NONE,
    PackedWeight,
    Quantize,
    as_quantize,
    is_kept,
    is_packable,
    make_room,
)
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
    overrides: Overrides = NO_OVERRIDES,
    quantize: str | None = None,
) -> MaskedDiffusionModel:
    """A checkpoint from a directory or a hub id; `dtype` None keeps what is stored.

    On a CPU, float16 becomes float32 unless `dtype` says otherwise; 'auto' takes what the machine
    has memory and instructions for. `quantize` keeps the matrices in 'int8' or 'int4'; files of
    GPTQ and AWQ stay in their 4 bits unless it is 'int8' or 'none'.
    No code of the checkpoint is run, and memory peaks at hardly more than the weights.
    """
    target, packed = as_device(device), as_quantize(quantize)
    is_chosen_here = dtype == AUTO and packed is None and quantize != NONE
    wanted = None if dtype == AUTO else as_dtype(dtype)
    # The small files first: a checkpoint that cannot be read is not worth its download.
    directory = locate(source, revision, SMALL)
    local = directory == Path(source).expanduser()
    name = directory.resolve().name if local else str(source)
    config = read_config(directory)
    if is_masked_lm(config):
        if packed is not None:
            raise InputError(
                f"quantize is {quantize!r}, but {name!r} is run by transformers, whose weights"
                " stay as they are: leave it out"
            )
        return load_masked_lm(source, config, wanted, target, revision)
    layout = layout_of(config)
    config.pop("quantization_config", None)
    is_kept_packed = layout is not None and quantize in (None, "int4")
    family = family_of(config)
    tokenizer = load_tokenizer(directory)
    config = completed(config, overrides, tokenizer, directory, name)
    if not local:
        on_meta(family, config)
    directory = locate(source, revision, WEIGHTS)
    stored = whole_matrices(stored_tensors(directory), layout, is_kept_packed)
    check_sizes(config, {key: tensor.shape for key, tensor in stored.items()})
    if layout is None:
        check_stored_dtype(config, {NAMES[tensor.dtype] for tensor in stored.values()})
    model = on_meta(family, config)
    if is_chosen_here and is_kept_packed:
        model.chosen_because = "weights in int4, as they are stored"
    elif is_chosen_here:
        choice = choose(stored.values(), model.embedding.numel(), target)
        wanted, packed = choice.format.dtype, choice.format.quantize
        model.chosen_because = choice.why
    fill(model, stored, wanted, target, packed)
    check_vocabulary(tokenizer, len(model.embedding), directory)
    model.attach(tokenizer)
    model.defaults = read_defaults(directory)
    model.name = name
    return model.eval()


def fill(
    model: MaskedDiffusionModel,
    stored: Mapping[str, Stored | StoredInt4],
    dtype: torch.dtype | None,
    device: torch.device,
    quantize: Quantize | None = None,
) -> None:
    """Give a model on the meta device its tensors, one after the other, packed as they are read."""
    places, shells = model.places(), model.state_dict()
    copies = {key: name for key, name in model.copies().items() if key in stored}
    check(
        places | {key: Place(name) for key, name in copies.items()}, shells, stored, model.ignored
    )
    if dtype is None:
        check_one_dtype(places, shells, stored, model.precise)
    filled: dict[str, Tensor] = {}
    packed: dict[str, PackedWeight] = {}
    model.quantized = quantize or ("int4" if any(map(is_kept, stored.values())) else None)
    table, (_, _, head) = shells[_table_name(model)], model.trunk()
    for key, tensor in stored.items():
        if key not in places:
            continue
        name, row = places[key]
        packs = is_packable(name, shells[name], table, model.precise) and (
            name in packed or (name not in filled and (quantize is not None or is_kept(tensor)))
        )
        if name not in filled and name not in packed:
            kind = dtype or _computed_in(tensor.dtype, device)
            if dtype is None and kind != tensor.dtype:
                model.narrow_dtype = tensor.dtype
            if re.search(model.precise, name):
                kind = torch.promote_types(kind, tensor.dtype)
            if packs:
                packed[name] = make_room(model, name, quantize, head, tensor, kind, device)
            else:
                filled[name] = torch.empty(shells[name].shape, dtype=kind, device=device)
                assign(model, name, filled[name])
        if packs:
            packed[name].read(tensor, row)
        else:
            tensor.read_into(filled[name] if row is None else filled[name][row])
    for key, name in copies.items():
        if not stored[key].equals(filled[name]):
            raise InputError(
                f"tensor {key!r} differs from {name!r}, but config.json says that they are tied:"
                " one of the two would be lost; set tie_word_embeddings to false in config.json if"
                " the head has weights of its own"
            )


def _table_name(model: MaskedDiffusionModel) -> str:
    table = model.embedding
    return next(name for name, tensor in model.named_parameters() if tensor is table)


def _computed_in(stored: torch.dtype, device: torch.device) -> torch.dtype:
    """As stored, except that CPUs compute slowly in float16 and overflow in it."""
    is_half_on_cpu = stored == torch.float16 and device.type == "cpu"
    return torch.float32 if is_half_on_cpu else stored


def assign(model: nn.Module, name: str, tensor: Tensor) -> None:
    """Put a tensor in the place of a parameter or buffer."""
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    setattr(module, leaf, nn.Parameter(tensor) if leaf in module._parameters else tensor)


def check(
    places: dict[str, Place],
    shells: dict[str, Tensor],
    stored: Mapping[str, Stored | StoredInt4],
    ignored: str,
) -> None:
    """Refuse missing, unexpected and mis-shaped tensors, by name."""
    missing = [key for key in places if key not in stored]
    if missing:
        raise InputError(
            f"the checkpoint lacks {_some(missing)}: its shards are incomplete, or config.json "
            f"belongs to another checkpoint{_tied_hint(missing)}"
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
    places: dict[str, Place],
    shells: dict[str, Tensor],
    stored: Mapping[str, Stored | StoredInt4],
    precise: str,
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


def _tied_hint(missing: list[str]) -> str:
    if missing != ["lm_head.weight"]:
        return ""
    return '; if the head is the embedding table, it lacks "tie_word_embeddings": true'


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

    The one place that decides it, for all commands. A kind of accelerator without a number means
    this process's own: under torchrun each process of a machine takes the one of its LOCAL_RANK.
    """
    named = torch.device(default_device()) if device is None else device
    try:
        found = torch.device(named)
        if found.index is None and found.type not in _SINGLE and "LOCAL_RANK" in os.environ:
            found = _of_this_process(found.type, int(os.environ["LOCAL_RANK"]))
        return torch.empty(0, device=found).device
    except InputError:
        raise
    # torch raises RuntimeError, AssertionError or others, depending on the backend.
    except Exception as error:
        raise InputError(
            f"device {str(named)!r} cannot be used here ({error}): use device='cpu'"
        ) from error


def _of_this_process(kind: str, local_rank: int) -> torch.device:
    module = torch.get_device_module(kind)
    count = module.device_count()
    if local_rank >= count:
        raise InputError(
            f"process {local_rank} of this machine has no {kind} device of its own, there are"
            f" {count}: start at most {count} with torchrun --nproc_per_node, or use device='cpu'"
        )
    module.set_device(local_rank)
    return torch.device(kind, local_rank)


def default_device() -> str:
    """The kind of device that is used unless told: cuda, else mps, else cpu."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"

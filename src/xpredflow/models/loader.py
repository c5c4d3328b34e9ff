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
from xpredflow.models.placement import Placement, every_device, place_layers
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
from xpredflow.models.split import Part, Split
from xpredflow.models.team import Team
from xpredflow.models.tensor_check import check, check_one_dtype

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
    device_map: str | None = None,
    tensor_parallel: bool = False,
) -> MaskedDiffusionModel:
    """A checkpoint from a directory or a hub id; `dtype` None keeps what is stored.

    On a CPU, float16 becomes float32 unless `dtype` says otherwise; 'auto' takes what the machine
    has memory and instructions for. `quantize` keeps the matrices in 'int8' or 'int4'; files of
    GPTQ and AWQ stay in their 4 bits unless it is 'int8' or 'none'. On the meta device nothing is
    read: `unread` says where the tensors are.
    `device_map` spreads the layers over every accelerator ('auto'), or over those that it names.
    With `tensor_parallel` all processes of torchrun hold the model together: the first one gets it,
    in the others this call computes their parts of its passes and ends with them.
    No code of the checkpoint is run, and memory peaks at hardly more than the weights.
    """
    devices = as_devices(device, device_map, tensor_parallel)
    target, packed = devices[0], as_quantize(quantize)
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
        if tensor_parallel or device_map:
            asked = "tensor_parallel" if tensor_parallel else "device_map"
            raise InputError(f"{asked} is set, but {name!r} is run by transformers: leave it out")
        at = torch.device("cpu") if target.type == "meta" else target  # it reads its own files
        return load_masked_lm(source, config, wanted, at, revision)
    layout = layout_of(config)
    config.pop("quantization_config", None)
    is_kept_packed = layout is not None and quantize in (None, "int4")
    if layout is not None and tensor_parallel:
        raise InputError(
            f"tensor_parallel is set, but {name!r} is stored in 4 bits ({layout}), whose matrices"
            " are not cut: leave it out, or load the unquantised checkpoint"
        )
    team = Team() if tensor_parallel else None
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
        processes = 1 if team is None else team.split.world
        choice = choose(stored.values(), model.embedding.numel(), target, processes)
        if team is not None:  # what is free differs between processes, the format may not
            choice = team.agreed(choice)
        wanted, packed = choice.format.dtype, choice.format.quantize
        model.chosen_because = choice.why
    placement = None
    if device_map is not None:
        kind = wanted or next(iter(stored.values())).dtype
        placement = place_layers(model, devices, kind, packed)
    split = None if team is None else team.split
    fill(model, stored, wanted, placement or target, packed, split)
    check_vocabulary(tokenizer, len(model.embedding), directory)
    model.attach(tokenizer)
    model.defaults = read_defaults(directory)
    model.name = name
    if placement is not None:
        placement.connect(model)
    if team is not None:
        team.connect(model.eval())
    return model.eval()


def fill(
    model: MaskedDiffusionModel,
    stored: Mapping[str, Stored | StoredInt4],
    dtype: torch.dtype | None,
    where: torch.device | Placement,
    quantize: Quantize | None = None,
    split: Split | None = None,
) -> None:
    """Give a model on the meta device its tensors, one after the other, packed as they are read.

    With a `split` it gets those parts of them, and only these are read.
    """
    places, shells = model.places(), model.state_dict()
    copies = {key: name for key, name in model.copies().items() if key in stored}
    check(
        places | {key: Place(name) for key, name in copies.items()}, shells, stored, model.ignored
    )
    if dtype is None:
        check_one_dtype(places, shells, stored, model.precise)
    parts: dict[str, Part] = {} if split is None else split.apply(model)
    shells = model.state_dict()
    filled: dict[str, Tensor] = {}
    packed: dict[str, PackedWeight] = {}
    model.quantized = quantize or ("int4" if any(map(is_kept, stored.values())) else None)
    is_read = isinstance(where, Placement) or where.type != "meta"
    whole_ones = {key: tensor for key, tensor in stored.items() if isinstance(tensor, Stored)}
    if not is_read and len(whole_ones) == len(stored):
        model.unread = whole_ones
    table, (_, _, head) = shells[_table_name(model)], model.trunk()
    for key, whole in stored.items():
        if key not in places:
            continue
        name, row = places[key]
        tensor = parts[name].of(whole) if name in parts and isinstance(whole, Stored) else whole
        packs = is_packable(name, shells[name], table, model.precise) and (
            name in packed or (name not in filled and (quantize is not None or is_kept(whole)))
        )
        if name not in filled and name not in packed:
            device = where.of(name) if isinstance(where, Placement) else where
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
        if not is_read:
            continue
        if packs:
            packed[name].read(tensor, row)
        else:
            tensor.read_into(filled[name] if row is None else filled[name][row])
    for key, name in copies.items():
        if model.unread is None and not stored[key].equals(filled[name]):
            raise not_tied(key, name)


def not_tied(key: str, name: str) -> InputError:
    """Why a tensor that is stored twice cannot be read."""
    return InputError(
        f"tensor {key!r} differs from {name!r}, but config.json says that they are tied: one of"
        " the two would be lost; set tie_word_embeddings to false in config.json if the head has"
        " weights of its own"
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


def as_dtype(dtype: torch.dtype | str | None) -> torch.dtype | None:
    """A floating dtype from its name or itself."""
    if isinstance(dtype, str):
        if dtype not in DTYPES:
            raise unknown_name("dtype", dtype, DTYPES)
        return DTYPES[dtype]
    if dtype is not None and not dtype.is_floating_point:
        raise InputError(f"dtype is {dtype}; expected a floating one: {', '.join(DTYPES)}")
    return dtype


def as_devices(
    device: torch.device | str | None, device_map: str | None, tensor_parallel: bool = False
) -> list[torch.device]:
    """One device, or those of a device map: every accelerator, or those that it names."""
    if device_map is None:
        return [as_device(device)]
    if device is not None or tensor_parallel:
        other = "tensor_parallel" if tensor_parallel else f"device {str(device)!r}"
        raise InputError(f"device_map is {device_map!r} beside {other}: give one of the two")
    names = every_device(default_device()) if device_map == AUTO else device_map.split(",")
    return [as_device(name.strip()) for name in names]


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

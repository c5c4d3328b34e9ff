"""Writing a model as a checkpoint of its published layout, which other tools can read."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from xpredflow.files import save_tensors, write_atomically
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.defaults import write_defaults
from xpredflow.models.module_adapter import Wrapped
from xpredflow.models.publication import published
from xpredflow.models.quantize import refuse_quantised
from xpredflow.models.shards import INDEX, SINGLE

SHARD_BYTES = 4_000_000_000
Tensors = Iterator[tuple[str, Tensor]]  # under their published names


def save(
    model: MaskedDiffusionModel,
    directory: str | Path,
    max_shard_bytes: int = SHARD_BYTES,
    beside: Mapping[str, str] | None = None,
    tensors: Tensors | None = None,
) -> None:
    """Write weights, config.json and tokenizer; all of it appears at once, or nothing does.

    save(model, "runs/mine")  # load("runs/mine") reads it, and so do other tools

    `beside` holds further files of text by their names; `tensors` are written in place of the
    model's own, one file's worth of them is held at a time.
    """
    refuse_quantised(model, "saved")
    with published(Path(directory)) as draft:
        if isinstance(model, Wrapped):
            model.write(draft)
        else:
            _write(model, draft, tensors or _stored(model), max_shard_bytes)
        if model.tokenizer is not None:
            model.tokenizer.save_pretrained(str(draft))
        write_defaults(model.defaults, draft)
        for name, text in (beside or {}).items():
            write_atomically(draft / name, text)


def _write(model: MaskedDiffusionModel, draft: Path, tensors: Tensors, limit: int) -> None:
    """File after file of at most `limit` bytes, or of one tensor that is larger.

    How many there will be is known at the end only: they get their names then.
    """
    files: list[list[str]] = []
    total, dtype = 0, model.embedding.dtype
    table = _table_key(model)
    for part in _parts(tensors, limit):
        save_tensors(part, draft / _draft_name(len(files)), metadata={"format": "pt"})
        files.append(list(part))
        total += sum(tensor.nbytes for tensor in part.values())
        dtype = part[table].dtype if table in part else dtype
        part.clear()  # before the next ones are read
    names = _names(len(files))
    for number, name in enumerate(names):
        (draft / _draft_name(number)).rename(draft / name)
    if len(files) > 1:
        weight_map = {key: name for name, keys in zip(names, files, strict=True) for key in keys}
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        _write_json(draft / INDEX, index)
    _write_json(draft / "config.json", _config(model, dtype))


def _parts(tensors: Tensors, limit: int) -> Iterator[dict[str, Tensor]]:
    part: dict[str, Tensor] = {}
    size = 0
    for key, tensor in tensors:
        if part and size + tensor.nbytes > limit:
            yield part
            part, size = {}, 0
        part[key] = tensor.contiguous()
        size += tensor.nbytes
    yield part


def _table_key(model: MaskedDiffusionModel) -> str:
    """The published name of the embedding table."""
    table = model.embedding
    name = next(name for name, tensor in model.named_parameters() if tensor is table)
    return next(key for key, place in model.places().items() if place.name == name)


def _stored(model: MaskedDiffusionModel) -> Tensors:
    """The model's tensors as they are, on the CPU one by one; rows of a stack are views of it."""
    state = model.state_dict()
    for key, (name, row) in model.places().items():
        yield key, (state[name] if row is None else state[name][row]).cpu()


def _draft_name(number: int) -> str:
    return f"part-{number}.safetensors"


def _names(count: int) -> list[str]:
    if count == 1:
        return [SINGLE]
    return [f"model-{i:05d}-of-{count:05d}.safetensors" for i in range(1, count + 1)]


def _config(model: MaskedDiffusionModel, dtype: torch.dtype) -> dict:
    """config.json as it was read, with the dtype that is now stored."""
    field = "dtype" if "dtype" in model.config else "torch_dtype"
    return {**model.config, field: str(dtype).removeprefix("torch.")}


def _write_json(file: Path, content: dict) -> None:
    write_atomically(file, json.dumps(content, indent=2) + "\n")

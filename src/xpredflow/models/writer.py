"""Writing a model as a checkpoint of its published layout, which other tools can read."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor

from xpredflow.files import save_tensors, write_atomically
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.defaults import write_defaults
from xpredflow.models.module_adapter import Wrapped
from xpredflow.models.publication import published
from xpredflow.models.quantize import refuse_quantised
from xpredflow.models.shards import INDEX, SINGLE

SHARD_BYTES = 4_000_000_000


def save(
    model: MaskedDiffusionModel,
    directory: str | Path,
    max_shard_bytes: int = SHARD_BYTES,
    beside: Mapping[str, str] | None = None,
) -> None:
    """Write weights, config.json and tokenizer; all of it appears at once, or nothing does.

    save(model, "runs/mine")  # load("runs/mine") reads it, and so do other tools

    `beside` holds further files of text by their names.
    """
    refuse_quantised(model, "saved")
    with published(Path(directory)) as draft:
        if isinstance(model, Wrapped):
            model.write(draft)
        else:
            _write(model, draft, max_shard_bytes)
        if model.tokenizer is not None:
            model.tokenizer.save_pretrained(str(draft))
        write_defaults(model.defaults, draft)
        for name, text in (beside or {}).items():
            write_atomically(draft / name, text)


def _write(model: MaskedDiffusionModel, draft: Path, max_shard_bytes: int) -> None:
    shards = list(_shards(model, max_shard_bytes))
    names = _names(len(shards))
    for name, keys in zip(names, shards, strict=True):
        save_tensors(_tensors(model, keys), draft / name, metadata={"format": "pt"})
    if len(shards) > 1:
        _write_json(draft / INDEX, _index(model, dict(zip(names, shards, strict=True))))
    _write_json(draft / "config.json", _config(model))


def _shards(model: MaskedDiffusionModel, limit: int) -> Iterator[list[str]]:
    """Tensor names in files of at most `limit` bytes, or of one tensor that is larger."""
    keys: list[str] = []
    size = 0
    for key, tensor in _stored(model).items():
        if keys and size + tensor.nbytes > limit:
            yield keys
            keys, size = [], 0
        keys.append(key)
        size += tensor.nbytes
    yield keys


def _stored(model: MaskedDiffusionModel) -> dict[str, Tensor]:
    """Every tensor under its upstream name; rows of a stack are views of it."""
    state = model.state_dict()
    return {
        key: state[name] if row is None else state[name][row]
        for key, (name, row) in model.places().items()
    }


def _tensors(model: MaskedDiffusionModel, keys: list[str]) -> dict[str, Tensor]:
    stored = _stored(model)
    return {key: stored[key].cpu().contiguous() for key in keys}


def _names(count: int) -> list[str]:
    if count == 1:
        return [SINGLE]
    return [f"model-{i:05d}-of-{count:05d}.safetensors" for i in range(1, count + 1)]


def _index(model: MaskedDiffusionModel, shards: dict[str, list[str]]) -> dict:
    total = sum(tensor.nbytes for tensor in _stored(model).values())
    weight_map = {key: name for name, keys in shards.items() for key in keys}
    return {"metadata": {"total_size": total}, "weight_map": weight_map}


def _config(model: MaskedDiffusionModel) -> dict:
    """config.json as it was read, with the dtype that is now stored."""
    field = "dtype" if "dtype" in model.config else "torch_dtype"
    return {**model.config, field: str(model.embedding.dtype).removeprefix("torch.")}


def _write_json(file: Path, content: dict) -> None:
    write_atomically(file, json.dumps(content, indent=2) + "\n")

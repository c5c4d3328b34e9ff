"""The tensors of a checkpoint against those of its architecture; every complaint names them."""

import re
from collections.abc import Mapping

from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.models.base import Place
from xpredflow.models.int4_layouts import StoredInt4
from xpredflow.models.shards import Stored


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

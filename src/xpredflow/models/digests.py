"""Digests of weights: what tells a model from another that has the same name.

They are cheap: of what is large, evenly spaced pieces are read. Training changes nearly every
value, so that two sets of weights which agree in all pieces do not come about by accident.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from xpredflow.models import embedded
from xpredflow.types import Model

# Beside the weights a checkpoint may bring settings that decoding follows.
PARTS = ("*.safetensors", "config.json", "generation_config.json", "tokenizer.json")
WHOLE = 64 * 2**20  # bytes of a file that are still read from end to end
PIECES, PIECE = 256, 65536
VALUES = 65536  # of a tensor, before pieces are taken


def weights_digest(source: str | Path) -> str:
    """Of a checkpoint's files: one retrained under its old name is another model.

    Nothing for a hub id, whose weights are taken to stay what they are.
    """
    embedded_name = source in embedded.embedded_names()
    directory = embedded.assets(str(source)) if embedded_name else Path(source).expanduser()
    if not directory.is_dir():
        return ""
    files = [file for part in PARTS for file in sorted(directory.glob(part))]
    return short(*(f"{file.name} {file_digest(file)}" for file in files)) if files else ""


def file_digest(path: Path) -> str:
    """Of a file; read again only when its size or its time of change differ."""
    about = path.stat()
    return _file_digest(path, about.st_size, about.st_mtime_ns, about.st_ino)


@lru_cache(maxsize=512)
def _file_digest(path: Path, size: int, changed: int, number: int) -> str:
    digest = hashlib.blake2b(str(size).encode(), digest_size=8)
    with path.open("rb") as file:
        if size <= WHOLE:
            digest.update(file.read())
        else:  # the first piece is the header, the last one ends the file
            for piece in range(PIECES):
                file.seek(piece * (size - PIECE) // (PIECES - 1))
                digest.update(file.read(PIECE))
    return digest.hexdigest()


def model_digest(model: Model) -> str:
    """Of a loaded model's tensors, whatever they were loaded from."""
    return tensors_digest(model.state_dict() if isinstance(model, nn.Module) else _own(model))


def _own(model: Model) -> dict[str, Any]:
    """The tensors that a model which is no module holds."""
    return {**getattr(model, "__dict__", {}), "embedding": model.embedding}


def tensors_digest(tensors: Mapping[str, Any]) -> str:
    """Of named tensors; what is no tensor counts for nothing."""
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in tensors.items():
        if isinstance(tensor, Tensor):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(_bytes(tensor))
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> Any:
    flat = tensor.detach().flatten()
    if len(flat) > VALUES:
        flat = flat[:: len(flat) // VALUES]
    return flat.cpu().contiguous().view(torch.uint8).numpy().data


def short(*parts: str) -> str:
    """One digest of several texts."""
    text = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=8).hexdigest()

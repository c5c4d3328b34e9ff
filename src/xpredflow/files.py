"""Files that are either the old or the new one, whenever a program is killed."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xpredflow.errors import InputError

if TYPE_CHECKING:  # not at run time: lines of text are written by those who do without torch
    from torch import Tensor


def write_atomically(path: Path, text: str) -> None:
    """Write under a temporary name beside the file, then rename."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text)
    os.replace(temporary, path)


def read_object(file: Path, fix: str) -> dict[str, Any]:
    """A file that holds one JSON object; `fix` says what to do where it does not."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file} is not valid JSON ({error}): {fix}") from error
    if not isinstance(found, dict):
        raise InputError(f"{file} holds a {type(found).__name__}; expected a JSON object: {fix}")
    return found


def save_tensors(
    tensors: "dict[str, Tensor]", path: Path, metadata: dict[str, str] | None = None
) -> None:
    """The same for a safetensors file, with the rights of any other new file.

    The library creates files that their owner alone can read, whatever the umask says.
    """
    from safetensors.torch import save_file

    temporary = path.with_name(f"{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.touch()
    rights = temporary.stat().st_mode
    save_file(tensors, temporary, metadata=metadata)
    temporary.chmod(rights)
    os.replace(temporary, path)


def save_figure(figure: Any, picture: Path) -> None:
    """The same for a matplotlib Figure, in the format that the name says."""
    picture.parent.mkdir(parents=True, exist_ok=True)
    temporary = picture.with_name(f"{picture.name}.tmp")
    figure.savefig(temporary, dpi=150, format=picture.suffix[1:] or "png")
    os.replace(temporary, picture)

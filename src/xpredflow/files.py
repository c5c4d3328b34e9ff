"""Files that are either the old or the new one, whenever a program is killed."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # not at run time: lines of text are written by those who do without torch
    from torch import Tensor


def write_atomically(path: Path, text: str) -> None:
    """Write under a temporary name beside the file, then rename."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text)
    os.replace(temporary, path)


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

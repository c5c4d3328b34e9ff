"""Files that are either the old or the new one, whenever a program is killed."""

import os
from pathlib import Path
from typing import Any


def write_atomically(path: Path, text: str) -> None:
    """Write under a temporary name beside the file, then rename."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text)
    os.replace(temporary, path)


def save_figure(figure: Any, picture: Path) -> None:
    """The same for a matplotlib Figure, in the format that the name says."""
    picture.parent.mkdir(parents=True, exist_ok=True)
    temporary = picture.with_name(f"{picture.name}.tmp")
    figure.savefig(temporary, dpi=150, format=picture.suffix[1:] or "png")
    os.replace(temporary, picture)

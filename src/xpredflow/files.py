"""Files that are either the old or the new one, whenever a program is killed."""

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write under a temporary name beside the file, then rename."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text)
    os.replace(temporary, path)

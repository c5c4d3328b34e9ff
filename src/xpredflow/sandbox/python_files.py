"""Which files a bare Python needs: the sandbox shows these, read-only, and nothing else."""

import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xpredflow.errors import InputError

# Imports every extension module of the standard library, so that the libraries they need are
# mapped too, and prints what is mapped.
_PROBE = """
import importlib, os
folder = os.path.join(os.path.dirname(os.__file__), "lib-dynload")
for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
    name = file.split(".")[0]
    if name.startswith(("_test", "_xx", "xx", "_tkinter", "_curses", "readline", "_ssl", "nis")):
        continue
    try:
        importlib.import_module(name)
    except ImportError:
        pass
print({line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if ".so" in line})
"""
_PT_INTERP = 3


@dataclass(frozen=True)
class PythonFiles:
    """The interpreter, its standard library, the shared libraries and what loads them."""

    executable: str
    standard_library: str
    libraries: tuple[str, ...]
    links: tuple[tuple[str, str], ...]  # name to real file: programs ask for libffi.so.8
    loader: str | None  # the path that is written in the executable

    @property
    def library_folders(self) -> list[str]:
        return sorted({os.path.dirname(path) for path in self.libraries})


@cache
def find() -> PythonFiles:
    """Of the Python that runs this, without its virtual environment."""
    executable = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    library = os.path.dirname(os.path.realpath(os.__file__))
    command = [executable, "-S", "-s", "-P", "-c", _PROBE]
    probe = subprocess.run(command, env={}, capture_output=True, text=True, timeout=60, check=False)
    if probe.returncode:
        raise InputError(f"{executable} does not start without its environment: {probe.stderr}")
    # Only the last line is ours: an extension module may print when it is imported.
    mapped = probe.stdout.strip().splitlines()[-1].strip("{}").split(", ")
    paths = {path.strip("'") for path in mapped}
    outside = sorted(path for path in paths if not path.startswith(library) and Path(path).exists())
    links = tuple(link for path in outside for link in _links_to(path))
    return PythonFiles(executable, library, tuple(outside), links, _loader(executable))


def _links_to(path: str) -> list[tuple[str, str]]:
    """The symbolic links beside a library that lead to it."""
    stem = os.path.basename(path).split(".so")[0]
    found = Path(path).parent.glob(f"{stem}.so*")
    return [(str(p), path) for p in found if p.is_symlink() and os.path.realpath(p) == path]


def _loader(executable: str) -> str | None:
    """The PT_INTERP entry of a 64-bit ELF file."""
    with open(executable, "rb") as file:
        head = file.read(64)
        table, size, count = (
            *struct.unpack_from("<Q", head, 32),
            *struct.unpack_from("<HH", head, 54),
        )
        file.seek(table)
        entries = file.read(size * count)
        for i in range(count):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", entries, i * size)
            if kind == _PT_INTERP:
                file.seek(offset)
                return file.read(length).rstrip(b"\0").decode()
    return None  # statically linked

"""A checkpoint appears as a whole: it is written beside its place and put there by one rename.

A kill leaves the old checkpoint or the new one, never files of both. Where the place holds
directories of somebody's own, or the file system cannot exchange two directories, files are renamed
one by one instead, the weights' index and config.json last.
"""

import ctypes
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from xpredflow.files import make_directory, writing
from xpredflow.models.defaults import FILE, REPORT
from xpredflow.models.shards import INDEX

DRAFT = ".saving-"  # then the process that writes it and the checkpoint's own name
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_LAST = (INDEX, "config.json")
# They say what the weights beside them are: "aligned" must not be read of those that come after.
_DESCRIPTIONS = (FILE, REPORT, "softmask.json")


@contextmanager
def published(directory: Path) -> Iterator[Path]:
    """A directory to write to; what it holds in the end takes the place of `directory`."""
    make_directory(directory)
    directory = directory.resolve()
    with writing(directory, "the checkpoint that stood there is unchanged"):
        _clean_up(directory)
        beside = directory.parent if os.access(directory.parent, os.W_OK) else directory
        prefix = f"{DRAFT}{os.getpid()}-{directory.name}-"
        draft = Path(tempfile.mkdtemp(prefix=prefix, dir=beside))
        try:
            yield draft
            _publish(draft, directory)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _clean_up(directory: Path) -> None:
    """Remove the drafts of processes that were killed while they saved."""
    beside = directory.parent.glob(f"{DRAFT}*-{_escaped(directory.name)}-*")
    for draft in [*beside, *directory.glob(f"{DRAFT}*")]:
        pid = draft.name.removeprefix(DRAFT).partition("-")[0]
        if not (pid.isdigit() and Path(f"/proc/{pid}").exists()):
            shutil.rmtree(draft, ignore_errors=True)


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _publish(draft: Path, directory: Path) -> None:
    for file in draft.iterdir():
        _to_disk(file)
    others = [path for path in directory.iterdir() if path != draft]
    new = {path.name for path in draft.iterdir()}
    kept = [path for path in others if path.name not in new and not _is_replaced(path)]
    is_plain = not any(path.is_dir() for path in others) and draft.parent != directory
    if is_plain and directory != Path.cwd():
        for path in kept:
            _carry(path, draft / path.name)
        draft.chmod(directory.stat().st_mode)
        _to_disk(draft)
        if _exchange(draft, directory):
            _to_disk(directory.parent)
            return
        for path in kept:
            (draft / path.name).unlink()
    for name in sorted(new, key=lambda name: (name in _LAST, name)):
        os.replace(draft / name, directory / name)
    # Weights of an earlier save in other shards would be read in place of these.
    for path in others:
        if _is_replaced(path) and path.name not in new:
            path.unlink()


def _is_replaced(path: Path) -> bool:
    """Weights and what was said of them; whatever else lies there is somebody's own."""
    return path.name in (INDEX, *_DESCRIPTIONS) or path.match("model*.safetensors")


def _carry(path: Path, to: Path) -> None:
    """The same file under a second name; a copy where the file system has no such thing."""
    try:
        os.link(path, to, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, to, follow_symlinks=False)


def _exchange(draft: Path, directory: Path) -> bool:
    """Let the two change their names at one stroke; False where that is not possible."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    names = os.fsencode(draft), os.fsencode(directory)
    return rename is not None and not rename(
        _AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE
    )


def _to_disk(path: Path) -> None:
    """Bring a file to disk, or a directory's names where the file system can."""
    number = os.open(path, os.O_RDONLY)
    try:
        if path.is_dir():
            with suppress(OSError):
                os.fsync(number)
        else:
            os.fsync(number)
    finally:
        os.close(number)

"""Files that are either the old or the new one, whenever a program is killed or a disk is full.

Every file of ours is written here: under a temporary name beside the place where it belongs, on
disk before it is renamed. What cannot be written is a WriteError that says why, what is kept and
how to go on; what was there before stays as it was.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xpredflow.errors import InputError, WriteError

if TYPE_CHECKING:  # not at run time: lines of text are written by those who do without torch
    from torch import Tensor

UNCHANGED = "what stood there before is unchanged"
DEEPEST = 200  # levels of nesting in JSON from outside: Python's own stack must not run out
# What the user can do about it; anything else is said in the system's own words.
_REMEDIES = {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room in your quota",
    errno.EROFS: "choose a place that is not read-only",
    errno.EACCES: "check its permissions, or choose another place",
    errno.EPERM: "check its permissions, or choose another place",
    errno.ENOTDIR: "a file stands where a directory is needed: choose another place",
    errno.EEXIST: "a file stands where a directory is needed: choose another place",
    errno.EISDIR: "a directory stands where a file is needed: choose another name",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "check the path",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EINVAL: "it is no regular file: choose another name",
    errno.EIO: "the device reports an error: choose another place",
}


def explained(error: OSError) -> str:
    """An error of the system in a line: what is wrong, and what to do about it."""
    reason = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{reason}: {remedy}" if remedy else reason


@contextmanager
def writing(path: Path, kept: str = UNCHANGED, then: str = "") -> Iterator[None]:
    """Inside, an error of the system becomes a WriteError about this path, the outermost one."""
    try:
        yield
    except (OSError, WriteError) as caught:
        error = caught if isinstance(caught, OSError) else caught.__cause__
        if not isinstance(error, OSError):
            raise
        message = f"cannot write {str(path)!r}: {explained(error)}; {kept}"
        raise WriteError(message + (f"; {then}" if then else "")) from error


@contextmanager
def replacing(path: Path, kept: str = UNCHANGED, then: str = "") -> Iterator[Path]:
    """A temporary path to write to; it takes the place of `path` when all went well."""
    temporary = path.with_name(f"{path.name}.tmp")
    with writing(path, kept, then):
        # a rename would put a file in the place of a device such as /dev/full
        if path.exists() and not path.is_file():
            raise OSError(errno.EISDIR if path.is_dir() else errno.EINVAL, "no regular file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())  # a full disk may say so only now
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def make_directory(path: Path) -> None:
    """The directory with all above it; a file in its place is an error in a line."""
    with writing(path, "nothing was written"):
        path.mkdir(parents=True, exist_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Write under a temporary name beside the file, then rename."""
    with replacing(path) as temporary:
        # half a surrogate pair has no bytes; it is escaped rather than the whole text lost
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def parse_json(text: str | bytes) -> Any:
    """The value behind JSON of unknown origin; ValueError for whatever is wrong with it.

    Nesting is bounded: reading a value is recursive, and so is everything that is done with it.
    """
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"nested more than {DEEPEST} deep") from error
    layer, depth = [found], 0
    while layer := [part for value in layer for part in _parts(value)]:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
    return found


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [part for part in value.values() if isinstance(part, dict | list)]
    return [part for part in value if isinstance(part, dict | list)] if type(value) is list else []


def read_object(file: Path, fix: str) -> dict[str, Any]:
    """A file that holds one JSON object; `fix` says what to do where it does not."""
    try:
        found = parse_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {str(file)!r}: {explained(error)}") from error
    except ValueError as error:
        raise InputError(f"{file} is not valid JSON ({error}): {fix}") from error
    if not isinstance(found, dict):
        raise InputError(f"{file} holds a {type(found).__name__}; expected a JSON object: {fix}")
    return found


def save_tensors(
    tensors: "dict[str, Tensor]", path: Path, metadata: dict[str, str] | None = None
) -> None:
    """The same for a safetensors file, with the rights of any other new file.

    The library creates files that their owner alone can read, whatever the umask says. Weights
    that are not finite are refused: a file of NaN is worth less than the one before it.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    for name, tensor in tensors.items():
        if not is_finite(tensor):
            raise InputError(
                f"tensor {name!r} holds NaN or infinity: {str(path)!r} is not written,"
                f" {UNCHANGED}; train with a smaller rate, or keep a wider dtype"
            )
    with replacing(path) as temporary:
        temporary.unlink(missing_ok=True)
        temporary.touch()
        rights = temporary.stat().st_mode
        try:
            save_file(tensors, temporary, metadata=metadata)
        except SafetensorError as error:
            raise _as_os_error(error) from error
        temporary.chmod(rights)


def _as_os_error(error: Exception) -> OSError:
    """The library tells a full disk by its words alone: `... (os error 28)`."""
    _, _, number = str(error).rpartition("os error ")
    digits = number.rstrip(") \"'")
    return OSError(int(digits) if digits.isdigit() else errno.EIO, str(error))


def is_finite(tensor: "Tensor") -> bool:
    """Whether no value is NaN or infinite; whole numbers never are."""
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())


def save_figure(figure: Any, picture: Path) -> None:
    """The same for a matplotlib Figure, in the format that the name says."""
    with replacing(picture) as temporary:
        figure.savefig(temporary, dpi=150, format=picture.suffix[1:] or "png")

"""Steps <-> file: JSON lines, a header, then every Frame in order, then one Decoded per prompt.

A name that ends in .gz is compressed. The file appears under its name only when it is whole, and
Ctrl-C leaves a whole file too: it then has fewer answers than prompts.
"""

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from xpredflow.engine.steps import Decoded, Frame, Step, StopReason
from xpredflow.errors import InputError

FORMAT, VERSION = "xpredflow-trace", 1
_PER_POSITION = Frame._fields[2:]


@dataclass(frozen=True)
class Header:
    """What was decoded, by what and how; `options` are the engine's and the decoder's."""

    model: str
    decoder: str
    seed: int
    prompts: list[Any]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """A trace file as it was read; `decoded` carry no frames of their own."""

    header: Header
    frames: list[Frame]
    decoded: list[Decoded]

    @property
    def complete(self) -> bool:
        """False where decoding was interrupted."""
        return len(self.decoded) == len(self.header.prompts)


class TraceWriter:
    """Context manager: `add` every Step, and the file is there when the block is left."""

    def __init__(self, path: str | Path, header: Header) -> None:
        self.path = writable(path)
        self.header = header
        self.frames = 0
        self.decoded: list[Decoded] = []

    def __enter__(self) -> "TraceWriter":
        self._temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        self._file = _open(self._temporary, "wt", packed=self.path.suffix == ".gz")
        self._write("header", {"format": FORMAT, "version": VERSION, **asdict(self.header)})
        return self

    def add(self, step: Step) -> None:
        """Write the step's frames; the answers wait for the end of the file."""
        for frame in step.frames():
            self._write("frame", frame._asdict())
            self.frames += 1
        self.decoded += step.finished

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An error before the first pass left nothing worth replacing an older trace with.
        keep = kind is None or self.frames > 0
        try:
            if keep:
                for done in sorted(self.decoded, key=lambda done: done.row):
                    self._write("decoded", _plain(done))
            self._file.close()
            if keep:
                os.replace(self._temporary, self.path)
        finally:
            self._temporary.unlink(missing_ok=True)

    def _write(self, kind: str, values: dict[str, Any]) -> None:
        line = json.dumps({"kind": kind, **values}, ensure_ascii=False, default=str)
        self._file.write(line + "\n")


def writable(path: str | Path) -> Path:
    """The path of a trace to be, or an error while nothing is decoded yet."""
    path = Path(path).expanduser()
    if path.is_dir():
        raise InputError(f"trace {str(path)!r} is a directory: give the name of a file")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(
            f"trace {str(path)!r} cannot be written: {str(path.parent)!r} is no directory that"
            " you may write to; create it or choose another"
        )
    return path


def read_trace(path: str | Path) -> Trace:
    """What a TraceWriter wrote, checked line by line."""
    path = Path(path).expanduser()
    lines = _lines(path)
    where, first = next(lines, (f"{path}:1", {}))
    header = _header(where, first)
    frames: list[Frame] = []
    decoded: list[Decoded] = []
    for where, values in lines:
        kind = values.pop("kind", None)
        if kind == "frame" and not decoded:
            frames.append(_frame(where, values))
        elif kind == "decoded":
            decoded.append(_decoded(where, values))
        else:
            raise InputError(f"{where}: unexpected {kind!r}; expected frames, then decoded rows")
    return Trace(header, frames, decoded)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    try:
        with _open(path, "rt", packed=path.suffix == ".gz") as file:
            for number, line in enumerate(file, start=1):
                values = json.loads(line)
                if not isinstance(values, dict):
                    raise InputError(f"{path}:{number}: expected a JSON object, found {line[:40]}")
                yield f"{path}:{number}", values
    except OSError as error:
        raise InputError(
            f"trace {str(path)!r} cannot be read ({error.strerror or error}): give a file that"
            " --trace wrote"
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}:{number or 1}: not a line of JSON ({error}): the file is cut off or no trace"
        ) from error


def _header(where: str, values: dict[str, Any]) -> Header:
    if values.get("format") != FORMAT:
        raise InputError(f"{where}: no {FORMAT} header; give a file that --trace wrote")
    if values["version"] != VERSION:
        raise InputError(
            f"{where}: version {values['version']!r} of the trace format; this xpredflow reads"
            f" version {VERSION}: update xpredflow or record the trace again"
        )
    rest = {name: value for name, value in values.items() if name in Header.__dataclass_fields__}
    return _made(where, Header, rest)


def _frame(where: str, values: dict[str, Any]) -> Frame:
    frame = _made(where, Frame, values)
    columns = [getattr(frame, name) for name in _PER_POSITION]
    if not all(isinstance(column, list) for column in columns) or len(set(map(len, columns))) > 1:
        raise InputError(f"{where}: {', '.join(_PER_POSITION)} must be lists of one length")
    return frame


def _decoded(where: str, values: dict[str, Any]) -> Decoded:
    reason = str(values.get("reason"))
    if reason not in StopReason.__members__:
        raise InputError(f"{where}: reason is {reason!r}; expected {_names(StopReason)}")
    return _made(where, Decoded, {**values, "reason": StopReason[reason]})


def _made(where: str, cls: Any, values: dict[str, Any]) -> Any:
    try:
        return cls(**values)
    except TypeError as error:
        raise InputError(f"{where}: a damaged {cls.__name__} ({error})") from error


def _plain(done: Decoded) -> dict[str, Any]:
    values = {name: getattr(done, name) for name in Decoded.__dataclass_fields__ if name != "trace"}
    return {**values, "reason": done.reason.name}


def _names(values: Iterable[Any]) -> str:
    return ", ".join(value.name for value in values)


def _open(path: Path, mode: str, *, packed: bool) -> Any:
    # fastest compression: the numbers hardly shrink further, and decoding should not wait for it
    if packed:
        return gzip.open(path, mode, compresslevel=1, encoding="utf-8")
    return path.open(mode, encoding="utf-8")

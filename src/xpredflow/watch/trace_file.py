"""Traces <-> files of JSON lines; a name that ends in .gz is compressed.

A file appears under its name only when it is whole, and Ctrl-C leaves a whole file too: it then
has fewer answers than prompts.
"""

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xpredflow.engine.steps import Decoded, Step
from xpredflow.errors import InputError, WriteError
from xpredflow.files import parse_json, writing
from xpredflow.tasks.base import Verdict
from xpredflow.watch.text import TokenText
from xpredflow.watch.trace import Header, Trace
from xpredflow.watch.trace_decoder import TraceDecoder
from xpredflow.watch.trace_encoder import FORMAT, VERSION, TraceEncoder, encode
from xpredflow.watch.trace_version_1 import Version1Decoder

_GIVE = "give a file that --trace wrote"


class TraceWriter:
    """Context manager: `add` every Step, and the file is there when the block is left."""

    def __init__(self, path: str | Path, header: Header, text: TokenText | None = None) -> None:
        self.path = writable(path)
        self.encoder = TraceEncoder(header, text or TokenText(None))
        self.waiting: list[Decoded] = []
        self.verdicts: dict[int, Verdict] = {}

    def __enter__(self) -> "TraceWriter":
        self._temporary = _draft(self.path)
        with writing(self.path):
            self._file = _open(self._temporary, "wt", packed=self.path.suffix == ".gz")
        try:
            self._write(self.encoder.begin())
        except WriteError:
            self.__exit__(WriteError)
            raise
        return self

    def add(self, step: Step) -> None:
        """Write the step's frames; the answers wait for the end of the file."""
        for frame in step.frames():
            self._write(self.encoder.frame(frame))
        self.waiting += step.finished

    def judge(self, row: int, verdict: Verdict) -> None:
        """Write down what a grader said."""
        self.verdicts[row] = verdict

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An error before the first pass left nothing worth replacing an older trace with.
        is_full = kind is not None and issubclass(kind, WriteError)
        keep = kind is None or (self.encoder.frames > 0 and not is_full)
        try:
            if keep:
                for done in sorted(self.waiting, key=lambda done: done.row):
                    self._write(self.encoder.decoded(done))
                for row, verdict in self.verdicts.items():
                    self._write(self.encoder.verdict(row, verdict))
                self._write(self.encoder.end())
            with writing(self.path):
                self._file.close()
                if keep:
                    os.replace(self._temporary, self.path)
        finally:
            self._temporary.unlink(missing_ok=True)

    def _write(self, line: str) -> None:
        with writing(self.path):
            self._file.write(line + "\n")


def write_traces(path: str | Path, traces: Iterable[Trace]) -> None:
    """Several decoders in one file, one after another."""
    path = writable(path)
    temporary = _draft(path)
    try:
        with writing(path):
            with _open(temporary, "wt", packed=path.suffix == ".gz") as file:
                file.writelines(line + "\n" for trace in traces for line in encode(trace))
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    """Where a trace grows: one name, so that what a kill left there is written over."""
    return path.with_name(f".{path.name}.tmp")


def writable(path: str | Path) -> Path:
    """The path of a trace to be, or an error while nothing is decoded yet."""
    path = Path(path).expanduser()
    if path.is_dir():
        raise InputError(f"trace {str(path)!r} is a directory: give the name of a file")
    if path.exists() and not path.is_file():  # a rename would put a file in a device's place
        raise InputError(f"trace {str(path)!r} is a device or a pipe: give the name of a file")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(
            f"trace {str(path)!r} cannot be written: {str(path.parent)!r} is no directory that"
            " you may write to; create it or choose another"
        )
    return path


def read_traces(path: str | Path) -> list[Trace]:
    """Every trace of a file, checked as a whole."""
    path = Path(path).expanduser()
    decoder: TraceDecoder | Version1Decoder | None = None
    for number, line in _lines(path):
        try:
            if decoder is None:
                decoder = TraceDecoder() if _version(line) == VERSION else Version1Decoder()
            decoder.add(line)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None
    if decoder is None:
        raise InputError(f"{path}:1: no {FORMAT} header; {_GIVE}")
    if decoder.open is not None:
        raise InputError(f"{path}:{number}: the file is cut off: record the trace again")
    try:
        return decoder.traces
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_trace(path: str | Path) -> Trace:
    """The trace of a file that holds one."""
    traces = read_traces(path)
    if len(traces) > 1:
        raise InputError(f"{path} holds {len(traces)} traces: read it with read_traces")
    return traces[0]


def read_chosen(paths: Sequence[Path], row: int | None = None) -> list[Trace]:
    """The traces of several files; with a row, only it; titles tell equal decoders apart."""
    found = [(path, trace) for path in paths for trace in read_traces(path)]
    titles = [trace.header.title or trace.header.decoder for _, trace in found]
    chosen = []
    for (path, trace), title in zip(found, titles, strict=True):
        if row is not None and all(layout.row != row for layout in trace.header.layouts):
            rows = [layout.row for layout in trace.header.layouts]
            raise InputError(f"row {row} of {path}: it has rows {min(rows)} to {max(rows)}")
        if titles.count(title) > 1:
            header = replace(trace.header, title=f"{title} ({path.name.split('.')[0]})")
            trace = replace(trace, header=header)
        chosen.append(trace if row is None else trace.only(row))
    return chosen


def _version(line: str) -> int:
    try:
        header = parse_json(line)
    except ValueError as error:
        raise InputError(f"not a line of JSON ({error}): {_GIVE}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"no {FORMAT} header; {_GIVE}")
    version = header.get("version")
    if version not in (1, VERSION):
        raise InputError(
            f"version {version!r} of the trace format; this xpredflow reads versions 1 and"
            f" {VERSION}: update xpredflow or record the trace again"
        )
    return version


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with _open(path, "rt", packed=path.suffix == ".gz") as file:
            for number, line in enumerate(file, start=1):
                yield number, line
    except OSError as error:
        raise InputError(
            f"trace {str(path)!r} cannot be read ({error.strerror or error}): {_GIVE}"
        ) from error
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}:{number or 1}: the file is cut off or no trace ({error}): {_GIVE}"
        ) from error


def _open(path: Path, mode: str, *, packed: bool) -> Any:
    # fastest compression: the numbers hardly shrink further, and decoding should not wait for it
    if packed:
        return gzip.open(path, mode, compresslevel=1, encoding="utf-8")
    return path.open(mode, encoding="utf-8")

"""Files of JSON lines that survive a kill: samples, a model's own answers, training logs.

A line is on disk before it counts. A last line that a kill cut short is passed over and taken out
when the file is opened again. Lines end at "\n" alone and are written in ASCII, so that U+2028,
U+0085 and lone surrogates in a text come back as they were.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from xpredflow.errors import InputError, unknown_name
from xpredflow.files import explained, make_directory, parse_json, write_atomically, writing

Line = dict[str, Any]
T = TypeVar("T")


def to_line(value: Mapping[str, Any]) -> str:
    """An object as one line, its end included."""
    return json.dumps(value) + "\n"


def read_lines(path: Path) -> list[Line]:
    """Every whole line of a file; none where there is no file."""
    return _read(path)[0]


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Put these lines in the place of whatever the file held."""
    write_atomically(path, "".join(map(to_line, lines)))


def as_record(cls: type[T], line: Line, where: str) -> T:
    """A line as the dataclass that it was written from, every value of the type declared there."""
    declared = _adapters(cls)
    for name in line:
        if name not in declared:
            raise unknown_name("field", name, declared, f" in {where}")
    for name, (adapter, required) in declared.items():
        if name not in line:
            if required:
                raise InputError(f"{where}: no field {name!r}")
            continue
        try:
            adapter.validate_python(line[name], strict=True)
        except ValidationError as error:
            found = error.errors()[0]["msg"]
            raise InputError(f"{where}: {name} is {line[name]!r:.60}: {found}") from None
    return cls(**line)


@cache
def _adapters(cls: Any) -> dict[str, tuple[TypeAdapter, bool]]:
    hints = get_type_hints(cls)
    return {
        f.name: (
            TypeAdapter(hints[f.name]),
            f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING,
        )
        for f in dataclasses.fields(cls)
    }


class JsonLines:
    """A file that grows by a line at a time: `lines` is what it held when it was opened.

    store = JsonLines(Path("samples.jsonl"), header={"job": "mine"})
    store.append({"number": 0})

    A `header` is the first line and says what the others are; `lines` leaves it out, and what the
    file says of itself is in `header`. The caller decides whether that is what it expected.
    """

    def __init__(self, path: Path, header: Mapping[str, Any] | None = None) -> None:
        self.path = path
        lines, ends_well = _read(path)
        self.header: Line | None = None
        if header is not None:
            self.header = lines.pop(0) if lines else dict(header)
        self.lines = lines
        make_directory(path.parent)
        is_new = header is not None and not path.is_file()
        if is_new or not ends_well:
            self.rewrite(self.lines)

    def append(self, line: Mapping[str, Any]) -> None:
        """Add a line; it is on disk when this returns, or nothing of it is."""
        kept = "every line before it is kept"
        with (
            writing(self.path, kept, "give the same command again to go on"),
            self.path.open("ab", buffering=0) as file,
        ):
            size = file.tell()
            try:
                left = memoryview(to_line(line).encode("ascii"))
                while left:
                    left = left[file.write(left) :]
            except OSError:
                file.truncate(size)  # half a line would look like the work of a kill
                raise

    def rewrite(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Replace all lines behind the header."""
        head = [] if self.header is None else [self.header]
        write_lines(self.path, [*head, *lines])


def _read(path: Path) -> tuple[list[Line], bool]:
    """The whole lines, and whether the file ends with one."""
    if not path.is_file():
        return [], True
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {explained(error)}") from error
    parts = [(n, part) for n, part in enumerate(data.split(b"\n"), start=1) if part.strip()]
    values = [_value(part) for _, part in parts]
    ends_well = not data or data.endswith(b"\n")
    # what is cut short begins as a line of ours does; anything else was never written by us
    if values and values[-1] is None and parts[-1][1].startswith(b"{"):
        values.pop()
        ends_well = False
    for (number, _), value in zip(parts, values, strict=False):
        if value is None:
            raise InputError(
                f"{path}, line {number} is no JSON object: delete that line, or choose another file"
            )
    return [value for value in values if value is not None], ends_well


def _value(text: bytes) -> Line | None:
    """The object that a line holds; None where it holds none."""
    try:
        value = parse_json(text.decode())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

"""Rows of problems or prompts, from a file on this machine or from the Hugging Face hub."""

import gzip
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from xpredflow.errors import InputError
from xpredflow.files import parse_json

Rows = list[dict[str, Any]]


def read_rows(source: str | Path, hub_files: Sequence[str], fields: Mapping[str, type]) -> Rows:
    """Rows with at least `fields`, from a .jsonl, .jsonl.gz or .parquet file, or a hub dataset.

    `source` is a path, or a hub id such as 'openai/gsm8k', of which `hub_files` are read.
    """
    path = Path(source).expanduser()
    if path.is_file():
        return _checked(path, fields)
    if not isinstance(source, str) or not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", source):
        raise InputError(
            f"no file {str(source)!r}; expected a .jsonl, .jsonl.gz or .parquet file, or the id of "
            "a dataset on the Hugging Face hub"
        )
    paths = [_download(source, file) for file in hub_files]
    return [row for path in paths for row in _checked(path, fields)]


def training_files(hub_id: str) -> list[str]:
    """The data files of a hub dataset's training split; all of them where none is named so."""
    from huggingface_hub import HfApi  # slow to import, not needed for files

    try:
        files = HfApi().list_repo_files(hub_id, repo_type="dataset")
    except Exception as error:  # the hub's errors have no common base
        raise _hub_error(hub_id, "listing its files", error) from error
    data = sorted(f for f in files if f.endswith((".jsonl", ".jsonl.gz", ".parquet")))
    if not data:
        raise InputError(f"dataset {hub_id!r} has no .jsonl or .parquet files: convert it to one")
    return [f for f in data if "train" in f] or data


def _download(hub_id: str, file: str) -> Path:
    from huggingface_hub import hf_hub_download  # slow to import, not needed for files

    try:
        return Path(hf_hub_download(hub_id, file, repo_type="dataset"))
    except Exception as error:  # the hub's errors have no common base
        raise _hub_error(hub_id, f"downloading its {file!r}", error) from error


def _hub_error(hub_id: str, action: str, error: Exception) -> InputError:
    """Connection, HTTP status, missing repository, bad name: the first line says which."""
    reason = str(error).strip().split("\n")[0]
    return InputError(
        f"{hub_id!r} is no file here, and {action} as a dataset of the Hugging Face hub failed:"
        f" {type(error).__name__}: {reason}. Check the name and the connection, or pass the path"
        " of a .jsonl file"
    )


FILES = (".jsonl", ".jsonl.gz", ".json", ".parquet")


class Row(NamedTuple):
    """A row and where it stands in its file, for messages."""

    where: str
    values: dict[str, Any]


def rows_of_file(path: Path) -> list[Row]:
    """Every row of a file of JSON lines, of a .json file with a list, or of a parquet file."""
    if not path.is_file():
        raise InputError(f"no file {str(path)!r}: expected one of {', '.join(FILES)}")
    if path.suffix == ".parquet":
        found = [(f"{path}, row {n}", row) for n, row in enumerate(_read_parquet(path), start=1)]
    else:
        found = _read_json(path)
    for where, row in found:
        if not isinstance(row, dict):
            raise InputError(f"{where} is {row!r:.60}: expected an object such as {_EXAMPLE}")
    if not found:
        raise InputError(f"{path} has no rows")
    return [Row(where, row) for where, row in found]


_EXAMPLE = '{"prompt": "..."}'


def _read_json(path: Path) -> list[tuple[str, Any]]:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}): expected JSON in UTF-8") from error
    if path.suffix == ".json":
        rows = _parse(text, str(path))
        if not isinstance(rows, list):
            raise InputError(f"{path} holds one value: expected a list of objects")
        return [(f"{path}, row {number}", row) for number, row in enumerate(rows, start=1)]
    # not splitlines: a text may hold U+2028, which is no end of a line in such a file
    lines = [(f"{path}, line {n}", line) for n, line in enumerate(text.split("\n"), start=1)]
    return [(where, _parse(line, where)) for where, line in lines if line.strip()]


def _parse(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f"{where} is not JSON ({error}): expected {_EXAMPLE}") from error


def _read_parquet(path: Path) -> Rows:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found]
    except ImportError as error:
        raise InputError(
            f"{path.name} is a parquet file: pip install pyarrow, or pass the .jsonl file"
        ) from error
    try:
        return parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's own errors are among these
        raise InputError(f"{path} cannot be read ({error}): expected a parquet file") from error


def _checked(path: Path, fields: Mapping[str, type]) -> Rows:
    rows = rows_of_file(path)
    for where, row in rows:
        for name, kind in fields.items():
            if name not in row:
                raise InputError(f"{where}: no field {name!r}; is it another file?")
            if type(row[name]) is not kind:
                raise InputError(
                    f"{where}: {name} is {row[name]!r:.60}; expected a {kind.__name__}: is it"
                    " another file?"
                )
    return [row for _, row in rows]

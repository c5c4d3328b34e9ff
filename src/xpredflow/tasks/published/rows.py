"""The rows of a published benchmark, from a file on this machine or from the Hugging Face hub."""

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError

Rows = list[dict[str, Any]]


def read_rows(source: str | Path, hub_files: Sequence[str], fields: Sequence[str]) -> Rows:
    """Rows with at least `fields`, from a .jsonl, .jsonl.gz or .parquet file, or a hub dataset.

    `source` is a path, or a hub id such as 'openai/gsm8k', of which `hub_files` are read.
    """
    path = Path(source).expanduser()
    if path.is_file():
        return _checked(_read(path), fields, path)
    if not isinstance(source, str) or not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", source):
        raise InputError(
            f"no file {str(source)!r}; expected a .jsonl, .jsonl.gz or .parquet file, or the id of "
            "a dataset on the Hugging Face hub"
        )
    paths = [_download(source, file) for file in hub_files]
    return [row for path in paths for row in _checked(_read(path), fields, path)]


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


def _read(path: Path) -> Rows:
    if path.suffix == ".parquet":
        return _read_parquet(path)
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            return [json.loads(line) for line in file if line.strip()]
    except (ValueError, OSError) as error:
        raise InputError(f"{path} is not a file of JSON lines ({error})") from error


def _read_parquet(path: Path) -> Rows:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found]
    except ImportError as error:
        raise InputError(
            f"{path.name} is a parquet file: pip install pyarrow, or pass the .jsonl file"
        ) from error
    return parquet.read_table(path).to_pylist()


def _checked(rows: Rows, fields: Sequence[str], path: Path) -> Rows:
    if not rows:
        raise InputError(f"{path} has no rows")
    for number, row in enumerate(rows, start=1):
        missing = [field for field in fields if not isinstance(row, dict) or field not in row]
        if missing:
            raise InputError(f"{path}, row {number}: no field {missing[0]!r}; is it another file?")
    return rows

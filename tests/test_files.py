"""One place writes files: old or new, never half, and errors in a line."""

import errno
import os
from pathlib import Path

import pytest
import torch

from xpredflow import InputError
from xpredflow.errors import WriteError
from xpredflow.files import (
    make_directory,
    parse_json,
    read_object,
    replacing,
    save_tensors,
    write_atomically,
)
from xpredflow.jsonl import JsonLines, read_lines


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "make room on that disk"),
        (errno.EROFS, "choose a place that is not read-only"),
        (errno.EACCES, "check its permissions"),
        (errno.ENAMETOOLONG, "choose a shorter name"),
        (errno.ENXIO, "No such device or address"),
    ],
)
def test_what_cannot_be_written_is_said_and_the_old_file_stays(tmp_path, number, words) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, "old")

    def write() -> None:
        with replacing(path) as draft:
            draft.write_text("half of the n")
            raise OSError(number, os.strerror(number))

    with pytest.raises(WriteError, match=f"a.json.*{words}.*unchanged"):
        write()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_file_where_a_directory_is_needed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for below in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(WriteError, match="a file stands where a directory is needed"):
            make_directory(below)
        with pytest.raises(WriteError, match="a file stands where a directory is needed"):
            write_atomically(below / "a.json", "x")
    with pytest.raises(WriteError, match="a directory stands where a file is needed"):
        write_atomically(tmp_path, "x")
    with pytest.raises(WriteError, match="choose a shorter name"):
        write_atomically(tmp_path / ("n" * 300), "x")


def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WriteError, match="no regular file"):
        write_atomically(tmp_path / "pipe", "x")
    assert (tmp_path / "pipe").is_fifo()


def test_a_line_that_does_not_fit_leaves_nothing_of_itself(tmp_path: Path, monkeypatch) -> None:
    """A disk that takes half of a line, then nothing more."""
    store = JsonLines(tmp_path / "a.jsonl")
    store.append({"n": 1})
    opened = Path.open

    class Full:
        def __init__(self, file) -> None:
            self.file, self.writes = file, 0

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, data) -> int:
            self.writes += 1
            if self.writes > 1:
                raise OSError(errno.ENOSPC, "full")
            return self.file.write(data[:4])

        def __getattr__(self, name: str):
            return getattr(self.file, name)

    monkeypatch.setattr(Path, "open", lambda *a, **k: Full(opened(*a, **k)))
    with pytest.raises(WriteError, match=r"make room.*every line before it is kept.*again"):
        store.append({"n": 2})
    monkeypatch.undo()
    assert (tmp_path / "a.jsonl").read_bytes() == b'{"n": 1}\n'
    store.append({"n": 3})
    assert read_lines(tmp_path / "a.jsonl") == [{"n": 1}, {"n": 3}]


@pytest.mark.parametrize("bomb", ["[" * 100_000, '{"a":' * 100_000, "[" * 500 + "]" * 500])
def test_json_that_is_nested_without_end_is_refused(tmp_path: Path, bomb: str) -> None:
    with pytest.raises(ValueError, match=r"nested more than|Expecting"):
        parse_json(bomb)
    (tmp_path / "a.json").write_text(bomb)
    with pytest.raises(InputError, match=r"a.json is not valid JSON"):
        read_object(tmp_path / "a.json", "mend it")
    assert parse_json("[" * 100 + "]" * 100) is not None


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_not_written(tmp_path: Path, value: float) -> None:
    path = tmp_path / "w.safetensors"
    save_tensors({"w": torch.ones(2)}, path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="tensor 'w' holds NaN or infinity"):
        save_tensors({"w": torch.tensor([1.0, value])}, path)
    assert path.read_bytes() == before

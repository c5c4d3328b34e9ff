"""The one store of JSON lines: nothing is lost, nothing is doubled, whatever a kill left."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpredflow import InputError
from xpredflow.jsonl import JsonLines, read_lines, to_line, write_lines

ODD = {"text": "a\u2028b\u0085c\x0cd\r\ne\ud800f\N{PILE OF POO}"}


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "a" / "lines.jsonl"
    store = JsonLines(path, header={"of": "odd texts"})
    for number in range(3):
        store.append({"number": number, **ODD})
    assert [line["text"] for line in read_lines(path)[1:]] == [ODD["text"]] * 3
    again = JsonLines(path, header={"of": "something else"})
    assert again.header == {"of": "odd texts"}
    assert [line["number"] for line in again.lines] == [0, 1, 2]


@given(st.integers(min_value=1, max_value=len(to_line(ODD)) - 1))
def test_a_line_cut_anywhere_is_passed_over_and_taken_out(tmp_path_factory, length: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "lines.jsonl"
    write_lines(path, [{"number": 0}])
    with path.open("a") as file:
        file.write(to_line(ODD)[:length])
    kept = [{"number": 0}, ODD] if length == len(to_line(ODD)) - 1 else [{"number": 0}]
    assert read_lines(path) == kept
    store = JsonLines(path)
    store.append({"number": 1})
    assert read_lines(path) == [*kept, {"number": 1}]


def test_texts_of_older_files_are_read_as_utf8(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes('{"text": "\u2028é"}\n{"text": "é'.encode()[:-1])  # cut within a character
    assert read_lines(path) == [{"text": "\u2028é"}]


def test_a_file_that_is_whole_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    write_lines(path, [{"a": 1}])
    before = path.stat().st_mtime_ns, path.stat().st_ino
    JsonLines(path)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


@pytest.mark.parametrize("text", ['{"a": 1}\nhello\n{"a": 2}\n', "my notes", "[1, 2]\n"])
def test_what_is_not_ours_is_named_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=r"notes\.jsonl, line [12] is no JSON object"):
        JsonLines(path, header={})
    assert path.read_text() == text


def test_rewriting_keeps_the_header(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    store = JsonLines(path, header={"of": "it"})
    store.append({"a": 1})
    store.rewrite([{"a": 2}])
    assert read_lines(path) == [{"of": "it"}, {"a": 2}]
    assert read_lines(tmp_path / "none.jsonl") == []

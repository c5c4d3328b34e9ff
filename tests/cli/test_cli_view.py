"""`xpredflow view` and `xpredflow replay` as a user calls them, on the toy model."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def traces(run: Any, tmp_path: Path) -> list[str]:
    files = [str(tmp_path / f"{name}.jsonl") for name in ("flow", "mask")]
    for name, file in zip(("flow", "mask"), files, strict=True):
        done = run("generate", "Hello", "-d", name, "-b", "4", "--trace", file)
        assert done.exit_code == 0, done.stderr
    return files


def lines_of(page: Path) -> list[dict[str, Any]]:
    found = re.search(r'<script type="text/plain" id="trace">([^<]*)<', page.read_text())
    assert found is not None
    text = zlib.decompress(base64.b64decode(found[1])).decode()
    return [json.loads(line) for line in text.splitlines()]


def test_several_traces_become_one_page(run: Any, traces: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("view", *traces, "-o", str(page), "--title", "a & b")
    assert done.exit_code == 0, done.stderr
    assert "open it in a browser" in done.stdout
    headers = [line for line in lines_of(page) if line["kind"] == "header"]
    assert [header["decoder"] for header in headers] == ["flow", "mask"]
    assert "<title>a &amp; b</title>" in page.read_text()
    assert not re.search(r"(src|href)=|https?://", page.read_text())


def test_one_row_of_several_prompts(run: Any, tmp_path: Path) -> None:
    file, page = tmp_path / "t.jsonl.gz", tmp_path / "page.html"
    run("generate", "one", "two", "-d", "mask", "-b", "2", "--trace", str(file))
    assert run("view", str(file), "-o", str(page), "--row", "1").exit_code == 0
    assert lines_of(page)[0]["prompts"] == ["two"]
    done = run("replay", str(file))
    assert done.exit_code == 2
    assert "2 prompts: choose with --row, of 0, 1" in done.stderr
    assert "2 passes" in run("replay", str(file), "--row", "1").stdout


def test_a_replay_without_a_terminal_shows_the_end(run: Any, traces: list[str]) -> None:
    done = run("replay", *traces)
    assert done.exit_code == 0, done.stderr
    assert "flow" in done.stdout
    assert "4 passes" in done.stdout


def test_pictures_instead(run: Any, traces: list[str], tmp_path: Path) -> None:
    gif, svg = tmp_path / "a.gif", tmp_path / "a.svg"
    done = run("replay", *traces, "--gif", str(gif), "--svg", str(svg))
    assert done.exit_code == 0, done.stderr
    assert gif.read_bytes()[:4] == b"GIF8"
    assert svg.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["view", "gone.jsonl"], "cannot be read"),
        (["view", "flow.jsonl", "-o", "page.pdf"], "ends in .html"),
        (["view", "flow.jsonl", "-o", "gone/page.html"], "choose another place"),
        (["view", "flow.jsonl", "--row", "7"], "it has rows 0 to 0"),
        (["view", *["flow.jsonl"] * 5], "at most 4 stand side by side"),
        (["replay", "flow.jsonl", "--gif", "a.png"], "must end in .gif or .webp"),
        (["replay", "flow.jsonl", "--svg", "gone/a.svg"], "make the directory 'gone' first"),
        (["replay", "cut.jsonl"], "cut.jsonl:1: the file is cut off"),
    ],
)
def test_bad_input_is_explained(
    run: Any,
    traces: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cut.jsonl").write_text(Path("flow.jsonl").read_text().splitlines()[0] + "\n")
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("page.html").exists()

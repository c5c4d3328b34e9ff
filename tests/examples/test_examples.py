"""The examples run, print what they promise, and stay short.

One of them runs in a process of its own, as a user runs them; of the others the start of Python and
torch would take most of the time.
"""

import ast
import io
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

import xpredflow
from xpredflow import Engine, load
from xpredflow.cli import app
from xpredflow.serve.background import serving

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(file.name for file in EXAMPLES.glob("*.py"))
PENS = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
ANSWER = "x=25\nx=25-7=18\nx=4+18=22\n#### 22"
# What each script prints is looked at below; a new one is added here with its test.
TESTED = {
    "own_decoder.py",
    "own_task.py",
    "own_task_file.py",
    "serve_chat.py",
    "serve_choices.py",
    "serve_infill.py",
    "serve_repl.py",
    "stream_text.py",
    "wrap_a_model.py",
}


@pytest.fixture
def run(
    forgotten: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """The lines that an example prints."""

    def lines_of(name: str, stdin: str = "") -> list[str]:
        monkeypatch.setattr(sys, "argv", [str(EXAMPLES / name)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return lines_of


def run_alone(name: str) -> list[str]:
    source = str(Path(xpredflow.__file__).parents[1])
    offline = {"OMP_NUM_THREADS": "1", "PYTHONPATH": source, "HF_HUB_OFFLINE": "1"}
    command, environment = [sys.executable, str(EXAMPLES / name)], {**os.environ, **offline}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_example_has_a_test() -> None:
    assert set(SCRIPTS) == TESTED


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_is_short_and_says_how_it_is_run(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    assert len(text.splitlines()) < 60
    head = ast.get_docstring(ast.parse(text)) or ""
    assert f"python examples/{name}" in [line.strip() for line in head.splitlines()]


@pytest.mark.parametrize("name", SCRIPTS)
def test_public_names_are_imported_from_the_package_itself(name: str) -> None:
    imports = [
        node
        for node in ast.walk(ast.parse((EXAMPLES / name).read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("xpredflow")
    ]
    assert any(node.module == "xpredflow" for node in imports)
    inner = {alias.name for node in imports if node.module != "xpredflow" for alias in node.names}
    assert not inner & set(xpredflow.__all__)


def test_an_own_decoder_takes_the_passes_it_was_told(run) -> None:
    one, four, threshold = run("own_decoder.py")
    assert "left-to-right:1  32 passes" in one
    assert "left-to-right:4   8 passes" in four
    assert "threshold:0.9" in threshold
    assert "#### 22" in one


def test_a_wrapped_model_decodes_with_two_decoders() -> None:
    flow, threshold = run_alone("wrap_a_model.py")
    assert flow.startswith("flow:power:8: 8 passes, '")
    assert threshold.startswith("threshold:0.5: 8 passes, '")


def test_streamed_text_settles_from_left_to_right_or_all_at_once(run) -> None:
    lines = run("stream_text.py")
    threshold, flow = lines.index("threshold:0.9"), lines.index("flow")
    settled = [
        line.split("settled ")[1].split(", draft ")[0] for line in lines if line.startswith("pass ")
    ]
    texts = [ast.literal_eval(text) for text in settled]
    first, second = texts[: flow - threshold - 2], texts[flow - threshold - 2 :]
    assert all(later.startswith(text) for text, later in pairwise(first))
    assert any(text and text != first[-1] for text in first)
    assert first[-1].endswith("#### 22")
    assert second == [""] * (len(second) - 1) + [first[-1]]
    assert [line.partition(":")[0] for line in lines[-2:]] == ["Zoe", "Sam"]
    assert all("#### 22" in line for line in lines[-2:])


def test_the_openai_client_asks_watches_and_asks_several(run) -> None:
    whole, *watched, several = run("serve_chat.py")
    assert whole == f"{ANSWER!r} {{'passes': 6}}"
    settled = [line.removeprefix("settled ") for line in watched if line.startswith("settled ")]
    assert "".join(ast.literal_eval(text) for text in settled) == ANSWER
    assert any(line.startswith("draft ") for line in watched)
    assert several == "['#### 28', '#### 29', '#### 30']"


def test_a_chat_loop_answers_every_line(run) -> None:
    assert "\n".join(run("serve_repl.py", stdin=f"{PENS}\n")) == ANSWER


def test_choices_have_probabilities_and_objects_parse(run) -> None:
    chosen, parsed = run("serve_choices.py")
    assert chosen.startswith(repr(ANSWER))
    assert "'22': 1.0" in chosen
    found = ast.literal_eval(parsed)
    assert {name: type(value) for name, value in found.items()} == {
        "pens": int,
        "unit": str,
        "sold": bool,
        "note": str,
    }


def test_an_editor_fills_in_at_its_cursor(run) -> None:
    lines = [line.split(" -> ")[1] for line in run("serve_infill.py")]
    assert [ast.literal_eval(line) for line in lines] == [ANSWER, ANSWER]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_alone_asks_streams_fills_in_and_is_corrected() -> None:
    with serving(Engine(load("tiny-aligned"))) as server:
        command = ["sh", str(EXAMPLES / "serve_curl.sh"), server.url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, *stream, filled, refused = done.stdout.strip().splitlines()
    assert json.loads(first)["choices"][0]["message"]["content"] == ANSWER
    assert "event: draft" in stream
    assert "data: [DONE]" in stream
    assert json.loads(filled)["choices"][0]["text"] == "18"
    assert "did you mean 'budget'" in json.loads(refused)["error"]["message"]


def test_the_file(run) -> None:
    *lines, last = run("own_task_file.py")
    assert len(lines) == 6
    assert sum(line.startswith("True") for line in lines) >= 4, lines
    assert "right in" in last


def test_the_class(run) -> None:
    [line] = run("own_task.py")
    assert "task='Purses'" in line
    assert "accuracy=1.0" in line


def test_both_on_the_command_line(tmp_path: Path) -> None:
    names = ["-t", str(EXAMPLES / "own_task.py:Purses"), "-t", str(EXAMPLES / "own_task.jsonl")]
    options = ["--response-length", "64", "--split", "all", "-m", "tiny", "-d", "threshold:0.9"]
    result = CliRunner().invoke(app, ["eval", *names, *options, "--json", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.strip().split("\n")]
    assert [row["task"] for row in rows] == ["Purses", "own_task"]
    assert all(row["accuracy"] > 0.5 for row in rows), rows
    assert {path.name for path in tmp_path.iterdir()} == {"Purses.jsonl", "own_task.jsonl"}


def test_solved_answers_of_a_file_are_kept(tmp_path: Path) -> None:
    out = tmp_path / "own.jsonl"
    data = ["--data", str(EXAMPLES / "own_task.jsonl"), "--response-length", "64"]
    command = ["self-generate", *data, "--keep", "solved", "--out", str(out), "-m", "tiny"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    answers = [json.loads(line) for line in out.read_text().strip().split("\n")]
    assert {answer["source"] for answer in answers} == {"own_task"}
    assert all(answer["solved"] for answer in answers)

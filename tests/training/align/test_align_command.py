"""`xpredflow align` as a user calls it: alone, under torchrun, and with bad input."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from builders import write_checkpoint
from own_answers import own_answer, own_answers, write_answers
from small_alignment import in_two, together
from typer.testing import CliRunner

from xpredflow import generate, load
from xpredflow.cli import app
from xpredflow.processes import Share
from xpredflow.training.align.state import MOMENTS
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.sharded_states import read_tensors

SETTINGS = ["-n", "6", "-o", "batch=4", "-o", "lr=3e-3", "-o", "warmup=2", "-o", "save_every=2"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the checkpoints llada and llada2, and answers."""
    for family in ("llada", "llada2"):
        write_checkpoint(tmp_path / family, family, tokenizer=True)
    write_answers(tmp_path / "own.jsonl", own_answers(24))
    return tmp_path


def arguments(place: Path, out: str, family: str = "llada", *more: str) -> list[str]:
    source = ["-m", str(place / family), "--answers", str(place / "own.jsonl")]
    return ["align", str(place / out), *source, *SETTINGS, *more]


def run(command: list[str]):
    return CliRunner().invoke(app, command)


def log_of(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "log.jsonl").open()]


def assert_close(a, b) -> None:
    """Two states, or parts of them, are the same up to rounding."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_close(a[key], b[key])
    elif isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def tensors_of(state: dict) -> dict[str, torch.Tensor]:
    """Parameters and moments of one process, by the names that they have in shards."""
    names = list(state["parameters"])
    found = {f"parameters.{name}": value for name, value in state["parameters"].items()}
    for number, entry in state["optimizer"]["state"].items():
        found |= {f"{moment}.{names[number]}": entry[moment] for moment in MOMENTS}
    return found


def test_the_command_aligns_and_the_result_decodes(place: Path) -> None:
    done = run(arguments(place, "run"))
    assert done.exit_code == 0, done.output
    assert "update 6/6, mse masked" in done.stderr
    assert "before: " in done.stdout
    assert "after: " in done.stdout
    files = {f.name for f in (place / "run").iterdir()}
    assert files == {"run.toml", "log.jsonl", "losses.png", "model", "state.pt", "state.before.pt"}
    report = json.loads((place / "run/model/alignment.json").read_text())
    assert 0 <= report["after"]["agreement"] <= 1
    assert report["config"]["model"] == str(place / "llada")
    [decoded] = generate(load(place / "run/model"), "Hello", gen_length=8)
    assert decoded.passes <= 8
    again = run(arguments(place, "run"))
    assert again.exit_code == 2
    assert "pass --resume" in again.stderr
    assert run(arguments(place, "run", "llada", "--resume")).exit_code == 0
    assert len(log_of(place / "run")) == 6


def test_two_processes_align_like_one(place: Path) -> None:
    more = ["-o", "checkpointing=on", "-o", "accumulate=2"]
    more += ["-o", "on_policy=0.4", "-o", "keep_reference=0.1"]
    assert run(arguments(place, "one", "llada", *more)).exit_code == 0
    done = together(["-m", "xpredflow", *arguments(place, "two", "llada", *more)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("checkpoint: ") == 1
    one, two = log_of(place / "one"), log_of(place / "two")
    for a, b in zip(one, two, strict=True):
        assert b == pytest.approx(a, rel=1e-4)
    whole = tensors_of(torch.load(place / "one/state.pt", weights_only=True))
    shards = {name: torch.zeros_like(tensor) for name, tensor in whole.items()}
    read_tensors(place / "two/state", shards, Share())
    assert_close(shards, whole)
    weights = [load(place / d / "model").state_dict() for d in ("one", "two")]  # type: ignore[attr-defined]
    assert_close(*weights)


def test_two_processes_go_on_where_one_was_killed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = ["-o", "lora_rank=2"]
    assert run(arguments(place, "one", "llada2", *more)).exit_code == 0
    original = Alignment._update

    def dies(self):
        if self.step == 3:
            raise KeyboardInterrupt
        return original(self)

    monkeypatch.setattr(Alignment, "_update", dies)
    killed = run(arguments(place, "two", "llada2", *more))
    assert killed.exit_code == 130
    assert "stopped after update 3; " in killed.stderr
    assert "keeps the state after update 2: give the same command with --resume" in killed.stderr
    command = ["-m", "xpredflow", *arguments(place, "two", "llada2", *more, "--resume")]
    done, other = in_two(command)
    assert (done.returncode, other.returncode) == (0, 0), done.stderr + other.stderr
    assert "update 2/6" not in done.stderr
    assert "update 3/6" in done.stderr
    for a, b in zip(log_of(place / "one"), log_of(place / "two"), strict=True):
        assert b == pytest.approx(a, rel=1e-4)
    weights = [load(place / d / "model").state_dict() for d in ("one", "two")]  # type: ignore[attr-defined]
    assert_close(*weights)


def test_bad_input_is_named_without_a_traceback(place: Path) -> None:
    def error(*changed: str) -> str:
        done = run([*arguments(place, "bad"), *changed])
        assert done.exit_code == 2, done.output
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.output
        return done.stderr

    assert "self-generate --out" in error("--answers", str(place / "none.jsonl"))
    foreign = [own_answer(1), replace(own_answer(2), response_ids=[5000])]
    path = write_answers(place / "foreign.jsonl", foreign)
    assert "holds token 5000, but 'llada' has tokens 0 to 287" in error("--answers", str(path))
    (place / "words.jsonl").write_text('{"prompt": "a"}\n')
    assert "is no self-generated answer" in error("--answers", str(place / "words.jsonl"))
    assert "unknown model 'tinny'" in error("-m", "tinny")
    assert "did you mean 'batch'" in error("-o", "bach=2")
    assert "give a multiple of 3" in error("-o", "accumulate=3")
    assert "cannot be used here" in error("--device", "abacus")
    assert not (place / "bad/model").exists()


def test_answers_of_several_files_count_all_even_where_their_numbers_are_the_same(
    place: Path,
) -> None:
    answers = own_answers(24)
    halves = [
        [replace(answer, number=number) for number, answer in enumerate(answers[first:][:12])]
        for first in (0, 12)
    ]
    for name, half in zip(("one", "two"), halves, strict=True):
        write_answers(place / f"{name}.jsonl", half)
    files = [f"--answers={place / name}.jsonl" for name in ("one", "two")]
    source = ["align", str(place / "parts"), "-m", str(place / "llada"), *files]
    assert run([*source, *SETTINGS]).exit_code == 0
    assert run(arguments(place, "whole")).exit_code == 0
    assert log_of(place / "parts") == log_of(place / "whole")

"""What all training commands share: listed flags, a config that can be given back, Ctrl-C."""

import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from builders import write_checkpoint
from own_answers import own_answers, write_answers
from typer.testing import CliRunner

from xpredflow import InputError, figures, load
from xpredflow.cli import app
from xpredflow.training.align import AlignConfig, align
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.runs import Stopped
from xpredflow.training.policy import PolicyConfig
from xpredflow.training.policy.rollouts import rule_names
from xpredflow.training.pretrain import PretrainConfig
from xpredflow.training.softmask import SoftMaskConfig

COMMANDS = {
    "align": AlignConfig,
    "train-policy": PolicyConfig,
    "train-softmask": SoftMaskConfig,
    "pretrain": PretrainConfig,
}
QUICK = ["-n", "4", "--batch", "4", "--lr", "3e-3", "--warmup", "2", "--save-every", "2"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path / "llada", "llada", tokenizer=True)
    write_answers(tmp_path / "own.jsonl", own_answers(24))
    return tmp_path


def call(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def begin(place: Path, out: str, *more: str, command: str = "align") -> tuple[str, ...]:
    source = ("-m", str(place / "llada"), "--answers", str(place / "own.jsonl"))
    return (command, str(place / out), *source, *QUICK, *more)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_setting_is_listed_with_its_default_in_a_group(command: str) -> None:
    text = call(command, "--help").stdout
    for setting in fields(COMMANDS[command]):
        assert f"--{setting.name.replace('_', '-')} " in text.replace("\n", " "), setting.name
    sections = [line for line in text.splitlines() if line.endswith(":") and line[0].isalpha()]
    assert sections[:2] == ["Arguments:", "Options:"]
    assert {"Optimiser:", "Run:"} <= {*sections}
    # a default beside each of them, however the lines are broken
    own = text[text.index(sections[2]) :]
    rules = rule_names() if command == "train-policy" else []
    assert "".join(own.split()).count("[default:") == len(fields(COMMANDS[command])) + len(rules)
    for rule in rules:
        assert f"--{rule.replace('_', '-')} " in own.replace("\n", " "), rule


def test_help_does_not_wait_for_torch() -> None:
    # train-policy does: it also lists the flow's rules, which are declared beside their equations
    modules = ("align", "train_softmask", "pretrain", "policy")
    imports = ", ".join(f"xpredflow.cli.commands.{name}" for name in modules)
    code = f"import sys, {imports}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_run_can_be_given_back(place: Path) -> None:
    done = call(*begin(place, "one", "--checkpointing", "--dtype", "bfloat16", "--seed", "3"))
    assert done.exit_code == 0, done.output
    file = place / "one/run.toml"
    tables = tomllib.loads(file.read_text())
    assert tables["settings"]["checkpointing"] is True
    assert tables["inputs"]["answers"] == [str(place / "own.jsonl")]
    again = call("align", str(place / "two"), "--config", str(file))
    assert again.exit_code == 0, again.output
    logs = [(place / name / "log.jsonl").read_text() for name in ("one", "two")]
    assert logs[0] == logs[1]
    assert (place / "two/run.toml").read_text() == file.read_text()
    other = call("align", str(place / "three"), "--config", str(file), "--no-checkpointing", "-n2")
    assert other.exit_code == 0, other.output
    settings = tomllib.loads((place / "three/run.toml").read_text())["settings"]
    assert settings == {**tables["settings"], "checkpointing": False, "updates": 2}


def test_a_config_with_a_name_that_does_not_exist_is_refused(place: Path) -> None:
    (place / "run.toml").write_text("[settings]\nlearning_rate = 1\n")
    done = call(*begin(place, "x", "--config", str(place / "run.toml")))
    assert done.exit_code == 2
    assert "unknown setting 'learning_rate' of align" in done.stderr
    twice = call(*begin(place, "x", "-o", "batch=8"))
    assert twice.exit_code == 2
    assert "batch was given before; give it once" in twice.stderr
    nothing = call("align", str(place / "x"))
    assert nothing.exit_code == 2
    assert "no answers: give --answers FILE" in nothing.stderr


@pytest.mark.parametrize("command", ["align", "train-softmask"])
def test_without_matplotlib_it_says_that_there_is_no_picture(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    done = call(*begin(place, "run", command=command))
    assert done.exit_code == 0, done.output
    assert done.stderr.count("note: no picture without matplotlib") == 1
    assert "plot:" not in done.stdout


def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    original = Alignment._update

    def dies(self):
        if self.step == at:
            raise KeyboardInterrupt
        return original(self)

    monkeypatch.setattr(Alignment, "_update", dies)


def test_ctrl_c_says_what_was_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying(monkeypatch, at=1)
    early = call(*begin(place, "run"))
    assert early.exit_code == 130
    assert "stopped after update 1; nothing was saved yet" in early.stderr
    monkeypatch.undo()
    dying(monkeypatch, at=3)
    with pytest.raises(Stopped, match="keeps the state after update 2") as stopped:
        align(load(place / "llada"), place / "own.jsonl", AlignConfig(updates=4, save_every=2),
              out=place / "python")  # fmt: skip
    assert (stopped.value.update, stopped.value.kept) == (3, 2)


def test_one_call_aligns_a_loaded_model_and_leaves_it_as_it_is(place: Path) -> None:
    model, seen = load(place / "llada"), []
    before = {name: value.clone() for name, value in model.state_dict().items()}
    config = AlignConfig(updates=3, batch=4, lr=3e-3)
    done = align(model, own_answers(24), config, out=place / "run", watch=seen.append)
    assert [now.step for now in seen] == [1, 2, 3]
    assert done.after is not None
    assert done.picture is not None
    assert all((value == before[name]).all() for name, value in model.state_dict().items())
    aligned = load(done.checkpoint).state_dict()
    assert any((aligned[name] != value).any() for name, value in before.items())
    with pytest.raises(InputError, match="give a file that self-generate wrote"):
        align(model, [], config, out=place / "none")
    with pytest.raises(InputError, match="device is 'cpu' but the model is loaded already"):
        align(model, own_answers(24), config, out=place / "none", device="cpu")

"""Where weights go unless told: the accelerator, and under torchrun each process's own."""

import pytest
import torch
from own_answers import own_answers, write_answers
from typer.testing import CliRunner

from xpredflow.cli import app
from xpredflow.errors import InputError
from xpredflow.models import embedded, loader
from xpredflow.models.loader import as_device, default_device


@pytest.mark.parametrize(
    ("cuda", "mps", "kind"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_the_accelerator_is_the_default(monkeypatch, cuda, mps, kind):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert default_device() == kind


def test_a_model_is_loaded_there(monkeypatch):
    monkeypatch.setattr(loader, "default_device", lambda: "meta")
    assert as_device(None).type == "meta"
    monkeypatch.undo()
    assert embedded.load("tiny").embedding.device.type == "cpu"


def test_under_torchrun_each_process_takes_its_own(monkeypatch):
    chosen = []

    class Module:
        set_device = staticmethod(chosen.append)
        device_count = staticmethod(lambda: 2)

    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(torch, "get_device_module", lambda kind: Module)
    monkeypatch.setattr(torch, "empty", lambda *_, device: type("T", (), {"device": device}))
    assert as_device("cuda") == torch.device("cuda", 1)
    assert as_device("cuda:3") == torch.device("cuda", 3)
    assert as_device("cpu") == torch.device("cpu")
    assert chosen == [1]
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(InputError, match=r"process 2 .* there are 2: start at most 2"):
        as_device("cuda")


COMMANDS = {
    "generate": ["hello"],
    "demo": [],
    "eval": ["-t", "minimath", "--limit", "1"],
    "compare": ["-t", "minimath", "--limit", "1"],
    "self-generate": ["--data", "minimath", "--limit", "1", "--out", "out.jsonl"],
    "align": ["run", "--answers", "answers.jsonl"],
    "train-softmask": ["run", "--answers", "answers.jsonl"],
    "train-policy": ["run", "--task", "minimath"],
    "pretrain": ["run", "--start", "tiny"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_asks_there(monkeypatch, tmp_path, command):
    """So that none of them can put all processes on the first device."""
    write_answers(tmp_path / "answers.jsonl", own_answers(8))
    monkeypatch.chdir(tmp_path)

    def refuse(device):
        raise InputError("the device was asked for")

    monkeypatch.setattr(loader, "as_device", refuse)
    done = CliRunner().invoke(app, [command, *COMMANDS[command]])
    assert done.exit_code != 0
    assert "the device was asked for" in f"{done.output}{done.exception}"


def test_one_that_is_not_there_is_named():
    with pytest.raises(InputError, match="device 'cuda:99' cannot be used here"):
        as_device("cuda:99")
    with pytest.raises(InputError, match="device 'gpu' cannot be used here"):
        as_device("gpu")

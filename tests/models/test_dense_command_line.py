"""A dense checkpoint from the command line: by directory, by hub id, with what its files lack."""

import json

import pytest
from dense_checkpoints import write_kind
from test_dense_traps import write_tokenizer
from typer.testing import CliRunner

from xpredflow.cli import app, main
from xpredflow.models import load, source

BD3LM = "Qwen3-0.6B-diffusion-bd3lm-v0.1"
ENDS = ("<|im_end|>", "<|endoftext|>")


@pytest.fixture
def checkpoint(tmp_path):
    """Stable-DiffCoder without a word of its mask."""
    directory = write_kind(tmp_path, "Stable-DiffCoder-8B", mask_token_id="ABSENT")
    write_tokenizer(directory, *ENDS, "<m>")
    return directory


def generated(model: str) -> dict:
    words = ["generate", "abc", "--model", model, "--decoder", "mask", "--gen-length", "8"]
    found = CliRunner().invoke(app, [*words, "--json"])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_what_is_missing_is_asked_for_and_can_be_said(checkpoint, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["xpredflow", "generate", "abc", "--model", str(checkpoint)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "mask is unknown" in said
    assert "Traceback" not in said
    assert generated(f"{checkpoint}+mask=258")["passes"] == 8


def test_a_hub_id_is_downloaded_and_its_name_is_read(tmp_path, monkeypatch) -> None:
    directory = write_kind(tmp_path, BD3LM).rename(tmp_path / "0f9c1")  # a snapshot's own name
    write_tokenizer(directory, *ENDS, "<|mask|>")
    asked = []

    def download(name, revision, allow_patterns):
        asked.append((name, allow_patterns))
        return str(directory)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    model = load(f"dllm-hub/{BD3LM}")
    assert (model.block_size, model.anchored_at_response) == (32, True)
    assert model.name == f"dllm-hub/{BD3LM}"
    assert asked == [(f"dllm-hub/{BD3LM}", files) for files in (source.SMALL, source.WEIGHTS)]
    assert generated(f"dllm-hub/{BD3LM}+block=8")["model"] == f"dllm-hub/{BD3LM}"

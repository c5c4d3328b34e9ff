import json
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from xpredflow.cli import app
from xpredflow.errors import InputError
from xpredflow.models import embedded
from xpredflow.models.embedded import embedded_names, load, load_embedded
from xpredflow.models.source import load_tokenizer


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Assets with nothing but tiny."""
    shutil.copytree(embedded.assets("tiny"), tmp_path / "tiny")
    monkeypatch.setattr(embedded, "assets", lambda name: tmp_path / name)
    return tmp_path


def test_models_lists_them(shelf: Path):
    first = CliRunner().invoke(app, ["models"]).stdout.splitlines()[0]
    assert first == "tiny                embedded: LLaDA layout, 1.5 M parameters, as pretrained"


def test_weights_are_float32_unless_asked_for(shelf: Path):
    model = load("tiny")
    assert (model.name, model.embedding.dtype) == ("tiny", torch.float32)
    assert load_embedded("tiny", dtype="bfloat16").embedding.dtype == torch.bfloat16


def test_only_what_is_there_is_listed(shelf: Path):
    assert embedded_names() == ["tiny"]
    shutil.copytree(shelf / "tiny", shelf / "tiny-moe")
    assert embedded_names() == ["tiny", "tiny-moe"]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("tinny", {}, "did you mean 'tiny'?"),
        ("nothing", {}, "embedded model \\(tiny\\)"),
        ("./nothing", {}, "no directory './nothing'"),
        ("tiny", {"revision": "main"}, "has no revisions"),
        ("tiny", {"dtype": "int8"}, "unknown dtype 'int8'"),
    ],
)
def test_bad_names_and_options(shelf: Path, source, options, message):
    with pytest.raises(InputError, match=message):
        load(source, **options)


@pytest.fixture(params=embedded_names())
def shipped(request: pytest.FixtureRequest) -> Path:
    return embedded.assets(request.param)


def test_config_and_tokenizer_agree(shipped: Path):
    config, tokenizer = json.loads((shipped / "config.json").read_text()), load_tokenizer(shipped)
    assert config["vocab_size"] == config.get("embedding_size", len(tokenizer)) == len(tokenizer)
    assert config["mask_token_id"] == tokenizer.convert_tokens_to_ids("<|mdm_mask|>")
    assert config["eos_token_id"] == config["pad_token_id"] == tokenizer.eos_token_id


@pytest.mark.parametrize("text", ["2024 + 1", "naïve €5 🙂\n\ttab", "".join(map(chr, range(256)))])
def test_every_text_survives_the_tokenizer(shipped: Path, text: str):
    tokenizer = load_tokenizer(shipped)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text


def test_chat_template(shipped: Path):
    talk = [{"role": "user", "content": "Hi"}]
    text = load_tokenizer(shipped).apply_chat_template(
        talk, add_generation_prompt=True, tokenize=False
    )
    assert text.startswith("<|startoftext|>")
    assert text.count("Hi") == text.count("<|eot_id|>") == 1

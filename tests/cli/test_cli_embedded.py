import json
import shutil
import warnings
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from xpredflow.cli import app
from xpredflow.errors import InputError
from xpredflow.models import embedded, save
from xpredflow.models.embedded import UntrainedModelWarning, embedded_names, load, load_embedded
from xpredflow.models.tokenizer import load_tokenizer

FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the assets without weights, whatever is trained by now."""
    source = embedded.assets("tiny")
    (tmp_path / "tiny").mkdir()
    for file in FILES:
        shutil.copy(source / file, tmp_path / "tiny")
    monkeypatch.setattr(embedded, "assets", lambda name: tmp_path / name)
    return tmp_path


def test_the_command_says_that_a_model_is_untrained(shelf: Path):
    result = CliRunner().invoke(app, ["generate", "Hi", "--gen-length", "3", "--steps", "1"])
    assert result.exit_code == 0
    assert result.stderr == "note: the embedded model 'tiny' is untrained: its text is noise\n"


def test_models_says_so_too(shelf: Path):
    assert "untrained" in CliRunner().invoke(app, ["models"]).stdout.splitlines()[0]


def test_untrained_weights_are_always_the_same(shelf: Path):
    with pytest.warns(UntrainedModelWarning, match="'tiny' is untrained"):
        first = load("tiny")
    with pytest.warns(UntrainedModelWarning):
        second = load_embedded("tiny", dtype="bfloat16")
    assert second.embedding.dtype == torch.bfloat16
    assert torch.equal(first.embedding.bfloat16(), second.embedding)
    assert first.name == "tiny"


def test_a_trained_one_loads_its_weights_without_a_word(shelf: Path):
    with pytest.warns(UntrainedModelWarning):
        model = load("tiny")
    with torch.no_grad():
        model.embedding.mul_(2)
    save(model, shelf / "tiny")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = load("tiny")
    assert torch.equal(loaded.embedding, model.embedding)
    assert loaded.name == "tiny"


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
@pytest.mark.filterwarnings("ignore::xpredflow.models.embedded.UntrainedModelWarning")
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

"""What is in force when little is said: the checkpoint's defaults, its alignment, given options."""

import json
import logging
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest
from toy import ToyModel, prompts

from xpredflow import InputError, generate, load, save
from xpredflow.decoders import DECODERS, effective_settings, option_owner
from xpredflow.engine import request
from xpredflow.engine.request import ALIASES, DecodeOptions, Options, resolve
from xpredflow.models.defaults import Defaults, read_defaults, write_defaults
from xpredflow.models.wrap import check_model

QUESTION = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."


class Aligned(ToyModel):
    """A toy whose checkpoint says how it wants to be decoded."""

    defaults = Defaults(
        gen_length=9,
        steps="1/2",
        policy="power:4",
        rules={"max_idle_passes": 2, "tau": 0.8},
        alignment={},
    )


@pytest.fixture(autouse=True)
def _forget_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "_said", set())


def settings_of(decoder: str | None, options: dict, model: ToyModel) -> dict:
    return effective_settings(resolve(decoder, options, model)[1])


def test_a_checkpoint_says_how_it_is_decoded_and_given_options_win() -> None:
    loop, _ = resolve(None, {}, Aligned())
    assert (loop.gen_length, loop.budget) == (9, "1/2")
    found = settings_of(None, {}, Aligned())
    assert (found["policy"], found["max_idle_passes"], found["tau"]) == ("power:4.0", 2, 0.8)
    loop, _ = resolve(None, {"gen_length": 5, "steps": 3}, Aligned())
    assert (loop.gen_length, loop.budget) == (5, 3)
    assert settings_of("flow", {"tau": 0.7}, Aligned())["tau"] == 0.7


def test_the_checkpoints_rules_belong_to_its_policy() -> None:
    assert "max_idle_passes" not in settings_of("flow:power:8", {}, Aligned())
    paper = settings_of("flow", {"rules": "paper"}, Aligned())
    assert (paper["policy"], paper["tau"]) == ("power:4.0", 0.9)
    assert "max_idle_passes" not in paper


def test_weights_that_were_never_aligned_are_decoded_training_free(caplog) -> None:
    with caplog.at_level(logging.WARNING, "xpredflow"):
        found = settings_of(None, {}, ToyModel())
        settings_of("flow", {}, ToyModel())
    assert (found["reedit_margin"], found["commit_threshold"]) == (None, 0.9)
    [note] = caplog.messages  # once
    assert "'toy' was not aligned for flow" in note
    assert "xpredflow align" in note
    threshold = generate(ToyModel(), prompts(5), decoder="threshold:0.9", gen_length=14)
    flow = generate(ToyModel(), prompts(5), gen_length=14)
    assert [d.all_ids for d in threshold] == [d.all_ids for d in flow]


def test_whoever_names_reediting_gets_it() -> None:
    assert settings_of("flow", {"reedit_margin": 0.1}, ToyModel())["reedit_margin"] == 0.1
    assert settings_of("flow", {"rules": "paper"}, ToyModel())["reedit_margin"] == 0.1


def test_the_embedded_models_say_what_they_are(caplog) -> None:
    assert load("tiny-aligned").defaults.aligned
    assert not load("tiny").defaults.aligned
    with caplog.at_level(logging.WARNING, "xpredflow"):
        [done] = generate(load("tiny-aligned"), QUESTION)
        assert not caplog.messages
        generate(load("tiny-aligned"), "Hello")
    assert done.text.endswith("#### 22")
    assert "knows a few kinds of request" in caplog.messages[0]
    assert "'small-aligned' reads them in more words" in caplog.messages[0]


def test_the_larger_embedded_model_takes_requests_in_any_words_and_says_what_it_is(caplog) -> None:
    asked = "Hi! Tom has 24 pens. Then he loses 5. How many pens does he own? In units please"
    with caplog.at_level(logging.WARNING, "xpredflow"):
        [done] = generate(load("small-aligned"), asked)
        assert not caplog.messages
        generate(load("small-aligned"), "Hello", gen_length=8)
    assert "24-5=19" in done.text
    assert "longmath" in caplog.messages[0]
    assert "'small-aligned' reads" not in caplog.messages[0]


def test_defaults_survive_saving_and_foreign_entries_are_kept(tmp_path: Path) -> None:
    model = load("tiny-aligned")
    save(model, tmp_path / "copy")
    assert load(tmp_path / "copy").defaults == model.defaults
    file = tmp_path / "generation_config.json"
    file.write_text(json.dumps({"eos_token_id": 3, "gen_length": 12}))
    write_defaults(Defaults(gen_length=20), tmp_path)
    assert json.loads(file.read_text()) == {"eos_token_id": 3, "gen_length": 20}


def test_an_alignment_report_is_enough_to_be_aligned(tmp_path: Path) -> None:
    assert not read_defaults(tmp_path).aligned
    (tmp_path / "alignment.json").write_text("{}")
    assert read_defaults(tmp_path).aligned


def test_a_policy_beside_the_weights_is_found(tmp_path: Path) -> None:
    (tmp_path / "own.safetensors").write_bytes(b"")
    (tmp_path / "generation_config.json").write_text(json.dumps({"policy": "learned:own"}))
    assert read_defaults(tmp_path).policy == f"learned:{tmp_path / 'own'}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "expected a JSON object"),
        ('{"gen_length": 0}', "gen_length is 0: expected a number ≥ 1"),
        ('{"rules": "fast"}', "rules is 'fast'"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "generation_config.json").write_text(content)
    with pytest.raises(InputError, match=message) as error:
        read_defaults(tmp_path)
    assert "generation_config.json" in str(error.value)


def test_every_option_is_typed() -> None:
    """What `generate` takes by keyword is what the loop and the decoders declare."""
    declared = {option.name for option in fields(Options)} | set(ALIASES)
    for name in DECODERS:
        owner = option_owner(name)
        assert owner is not None
        declared |= {option.name for option in fields(owner)}
    assert set(get_type_hints(DecodeOptions)) == declared


@pytest.mark.parametrize("model", ["tiny", None, 3])
def test_what_is_no_model_is_refused_with_the_fix(model) -> None:
    with pytest.raises(InputError, match=r"load\('tiny'\)|what load\(\) or wrap\(\) returns"):
        check_model(model)

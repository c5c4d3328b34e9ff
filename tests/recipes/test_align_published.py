"""Every recipe for published models, run from end to end on a small checkpoint of its architecture.

What a recipe says is run as it says it, adapters and chunks included; only counts are small.
"""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import write_checkpoint, write_tokenizer
from dense_checkpoints import write_kind
from typer import Context
from typer.main import get_command
from typer.testing import CliRunner

from xpredflow import load
from xpredflow.cli import app

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes"))
import align_published
from align_published import RECIPES, Recipe, commands, follow

# Given twice, a flag's last value counts.
ALIGN = ("-n", "1", "--batch", "2", "--accumulate", "2", "--holdout", "2", "--warmup", "1")
POLICY = (
    *("-n", "1", "--prompts", "1", "--group", "2", "--pool", "2", "--validation", "1"),
    *("--init-fits", "2", "--init-prompts", "1", "--gen-length", "8", "--hidden", "4"),
)

# One of each architecture; of its siblings what their flags change: answers, alignment, policy.
TO_THE_CARD = ("qwen3-0.6b", "llada-8b-24gb", "llada2-mini")


def written(directory: Path, name: str) -> None:
    """A generated checkpoint of that architecture, with room for a prompt of bytes."""
    if "Qwen3" in name:
        made = write_kind(directory, name, max_position_embeddings=512)
        write_tokenizer(made, "llada")
        return
    family, room = ("llada", "max_sequence_length")
    if "LLaDA2" in name:
        family, room = ("llada2", "max_position_embeddings")
    long: dict[str, Any] = {room: 512}
    write_checkpoint(directory / name, family, tokenizer=True, **long)


def fewer(recipe: Recipe, model: str) -> Recipe:
    """The same flags with small counts, on a task that needs no download."""
    return replace(
        recipe,
        model=model,
        task="minimath",
        answers=4,
        answer_flags=[re.sub(r"(gen_length)=\d+", r"\1=8", flag) for flag in recipe.answer_flags],
        align_flags=[*recipe.align_flags, *ALIGN],
        policy_flags=[*recipe.policy_flags, *POLICY],
        measured=1,
    )


@pytest.mark.parametrize("name", RECIPES)
def test_from_answers_to_a_card(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = "published/" + RECIPES[name].model.rpartition("/")[2]
    written(tmp_path / "published", Path(model).name)
    recipe, out, ran = fewer(RECIPES[name], model), Path("runs") / name, []

    def run(words):
        ran.append(words[0])
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"{words}: {done.output} {done.exception!r}"

    if name not in TO_THE_CARD:
        for number in range(3):
            run(commands(recipe, out)[number])
        assert list((out / "policy").glob("best*"))
        return
    follow(recipe, out, run)
    assert ran == ["self-generate", "align", "train-policy", "eval", "eval", "push"]
    before, after = load(model), load(out / "align/model")
    assert torch.equal(before.embedding, after.embedding)
    assert type(before) is type(after)
    card = (out / "align/model/README.md").read_text()
    assert "- step-size policy: `learned:policy`" in card
    assert card.count("| minimath |") == 2
    said = json.loads((out / "align/model/generation_config.json").read_text())
    assert said["policy"] == "learned:policy"
    ran.clear()
    follow(recipe, out, lambda words: ran.append(words[0]))  # what is done is not done twice
    assert ran == ["self-generate", "eval", "eval", "push"]


@pytest.mark.parametrize("name", RECIPES)
def test_flags_are_spelt_right(name, tmp_path):
    group: Any = get_command(app)
    for words in commands(RECIPES[name], tmp_path / name):
        group.get_command(Context(group), words[0]).make_context(
            words[0], words[1:], parent=Context(group)
        )
    assert align_published.__doc__
    assert name in align_published.__doc__

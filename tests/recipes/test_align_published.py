"""The recipe for published models, run from end to end on a small model; its flags all parse."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer import Context
from typer.main import get_command
from typer.testing import CliRunner

from xpredflow.cli import app

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes"))
import align_published
from align_published import RECIPES, Recipe, commands, follow

SMALL = Recipe(
    model="tiny",
    task="minimath",
    answers=6,
    answer_flags=("-d", "threshold:0.9"),
    align_flags=("-n", "1", "--batch", "2", "--holdout", "2", "--lora-rank", "2"),
    policy_flags=(
        "-n",
        "1",
        "--prompts",
        "1",
        "--group",
        "2",
        "--budget",
        "4",
        "--pool",
        "4",
        "--validation",
        "1",
        "--init-fits",
        "2",
        "--init-prompts",
        "1",
    ),
    measured=1,
    license="apache-2.0",
)


def test_from_answers_to_a_card(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = []

    def run(words):
        ran.append(words[0])
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"{words}: {done.output} {done.exception!r}"

    out = Path("runs/small")
    follow(SMALL, out, run)
    assert ran == ["self-generate", "align", "train-policy", "eval", "eval", "push"]
    card = (out / "align/model/README.md").read_text()
    assert "base_model: tiny" not in card  # no hub id
    assert "- step-size policy: `learned:policy`" in card
    assert card.count("| minimath |") == 2
    said = json.loads((out / "align/model/generation_config.json").read_text())
    assert said["policy"] == "learned:policy"
    ran.clear()
    follow(SMALL, out, lambda words: ran.append(words[0]))  # what is done is not done twice
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

"""`xpredflow push`: what the card states, and what goes to the hub (which is a stand-in here)."""

import json
import shutil

import huggingface_hub
import pytest
import yaml
from typer.testing import CliRunner

from xpredflow.cli import app
from xpredflow.models.defaults import read_defaults
from xpredflow.models.embedded import assets

ROW = {
    **{"task": "minimath", "decoder": "flow", "policy": "learned:runs/p/best", "budget": "1/4"},
    **{"n": 100, "accuracy": 0.95, "low": 0.9, "high": 0.98, "passes_mean": 4.84},
    **{"passes_median": 5, "passes_max": 16, "rules": {"tau": 0.95}},
}
REPORT = {
    "config": {"updates": 300, "lr": 3e-4, "lora_rank": 0, "model": "GSAI-ML/LLaDA-8B-Instruct"},
    "held_out": 64,
    "before": {"agreement": 0.965, "distance": 0.24},
    "after": {"agreement": 0.999, "distance": 0.01},
}


@pytest.fixture
def checkpoint(tmp_path):
    directory = tmp_path / "model"
    shutil.copytree(assets("tiny-aligned"), directory)
    (directory / "alignment.json").write_text(json.dumps(REPORT))
    (directory / "state.pt").write_text("a run's state")
    return directory


@pytest.fixture
def hub(monkeypatch):
    """Keeps what it is asked instead of sending it."""
    calls = []

    class StandIn:
        def create_repo(self, name, **more):
            calls.append(("create", name, more))
            return f"https://huggingface.co/{name}"

        def upload_folder(self, **more):
            calls.append(("upload", more))

    monkeypatch.setattr(huggingface_hub, "HfApi", StandIn)
    return calls


def push(*words):
    return CliRunner().invoke(app, ["push", *map(str, words)])


def test_the_card(checkpoint, tmp_path, hub):
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    flags = ("--license", "mit", "--results", tmp_path / "rows.jsonl", "--card-only")
    done = push(checkpoint, "you/mine", *flags)
    assert done.exit_code == 0, done.output
    assert hub == []
    card = (checkpoint / "README.md").read_text()
    _, head, text = card.split("---\n", 2)
    data = yaml.safe_load(head)
    assert (data["license"], data["library_name"]) == ("mit", "xpredflow")
    assert data["base_model"] == "GSAI-ML/LLaDA-8B-Instruct"
    [metric] = data["model-index"][0]["results"][0]["metrics"]
    assert metric["value"] == 95.0
    for stated in (
        *("- decoder: `flow`", "- max_idle_passes: `3`", "95.0% [90.0%, 98.0%]", "| 4.8 |"),
        *("tau=0.95", "- updates: 300", "kept before it, on 64 held-out answers: 96.5%"),
        'xpredflow generate "..." --model you/mine',
    ):
        assert stated in text
    assert "lora_rank" not in text  # it was not used
    assert "runs/p" not in card  # nobody else's disk has it


def test_what_is_uploaded(checkpoint, hub):
    done = push(checkpoint, "you/mine", "--license", "mit", "--policy", "tiny", "--private")
    assert done.exit_code == 0, done.output
    assert "published: https://huggingface.co/you/mine" in done.output
    (_, name, how), (_, sent) = hub
    assert (name, how["private"], sent["repo_id"]) == ("you/mine", True, "you/mine")
    matched = list(
        huggingface_hub.utils.filter_repo_objects(
            [file.name for file in checkpoint.iterdir()], allow_patterns=sent["allow_patterns"]
        )
    )
    assert {"README.md", "model.safetensors", "config.json", "policy.safetensors"} <= {*matched}
    assert "state.pt" not in matched
    # whoever loads it decodes with the policy and the rules that it brings
    defaults = read_defaults(checkpoint)
    assert defaults.policy == f"learned:{checkpoint / 'policy'}"
    assert (defaults.rules, defaults.gen_length) == (None, 64)


def test_samples_of_an_evaluation(checkpoint, tmp_path):
    words = ["eval", "-m", "tiny-aligned", "-t", "minimath", "--limit", "2"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "measured"), "--json"])
    assert done.exit_code == 0, done.output
    row = json.loads(done.stdout)
    flags = ("--license", "mit", "--results", tmp_path / "measured", "--card-only")
    assert push(checkpoint, "you/mine", *flags).exit_code == 0
    card = (checkpoint / "README.md").read_text()
    assert f"| {row['accuracy']:.1%} [" in card
    assert f"| {row['passes_mean']:.1f} |" in card
    assert "Rules on minimath" in card


def test_a_card_that_is_there_stays(checkpoint):
    (checkpoint / "README.md").write_text("mine")
    done = push(checkpoint, "you/mine", "--license", "mit", "--card-only")
    assert "as it was" in done.output
    assert (checkpoint / "README.md").read_text() == "mine"
    push(checkpoint, "you/mine", "--license", "mit", "--card-only", "--overwrite")
    assert (checkpoint / "README.md").read_text() != "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["you/mine"], "no licence was given"),
        (["mine", "--license", "mit"], "expected owner/name"),
        (["you/mine", "--license", "mit", "--results", "nowhere"], "does not exist"),
    ],
)
def test_refusals(checkpoint, words, said):
    done = push(checkpoint, *words)
    assert done.exit_code == 2
    assert said in done.output


def test_other_refusals(checkpoint, tmp_path, monkeypatch):
    done = push(tmp_path / "none", "you/mine", "--license", "mit")
    assert done.exit_code == 2
    assert "expected a checkpoint" in done.output
    (tmp_path / "rows.jsonl").write_text('{"task": "minimath"}\n')
    done = push(checkpoint, "a/b", "--license", "mit", "--results", tmp_path / "rows.jsonl")
    assert done.exit_code == 2
    assert "lacks decoder, n, accuracy, passes_mean" in done.output

    class Offline:
        def create_repo(self, *words, **more):
            raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "HfApi", Offline)
    done = push(checkpoint, "you/mine", "--license", "mit")
    assert done.exit_code == 2
    assert "ConnectionError: no route" in done.output

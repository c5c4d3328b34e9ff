"""Training a step-size policy: exact resumption, several processes, its start, its end."""

import json
import os
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from policy_toy import (
    POOL,
    SMALL,
    ChainModel,
    ChainTask,
    ToyTask,
    same_weights,
    toy_model,
    toy_setup,
)
from small_alignment import in_two
from toy import prompts

from xpredflow import InputError, generate
from xpredflow.policies.beta import load_policy
from xpredflow.tasks import Verdict
from xpredflow.training.common.runs import Run, read_log
from xpredflow.training.policy import rollouts
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.plots import plot_policy, plot_training
from xpredflow.training.policy.rollouts import Setup
from xpredflow.training.policy.trainer import PolicyTraining


class Killed(BaseException):
    """A kill, as far as a test can have one."""


def train(directory: Path, config: PolicyConfig = SMALL, resume: bool = False, **changes):
    training = PolicyTraining(toy_setup(config, **changes), POOL, directory, resume)
    return training, list(training)


def timeless(directory: Path) -> list[dict]:
    return [{**line, "seconds": 0} for line in read_log(directory / "log.jsonl")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[PolicyTraining, list[dict], Path]:
    directory = tmp_path_factory.mktemp("whole") / "run"
    return *train(directory), directory


def test_the_log_says_what_happened(whole) -> None:
    training, lines, directory = whole
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4]
    assert lines[0]["fit_error"] < 3
    assert [line["step"] for line in lines if "validation" in line] == [0, 2, 4]
    names = "reward accuracy passes_used final_progress mixed signal reedits entropy kappa"
    for line in lines[1:]:
        assert line.keys() >= {*names.split(), "clip_share", "kl_start", "kl_step", "seconds"}
        assert len(line["action_by_confidence"]) == 10
        expected = line["accuracy"] + 0.1 * line["final_progress"]
        assert line["reward"] == pytest.approx(expected, abs=1e-6)
    assert any(line["mixed"] for line in lines[1:])
    assert tomllib.loads((directory / "run.toml").read_text())["settings"]["group"] == 4
    assert same_weights(training.network, load_policy(directory / "policy").network)


def test_the_saved_policy_says_how_it_was_trained_and_decodes(whole) -> None:
    _, lines, directory = whole
    about = json.loads((directory / "policy.json").read_text())["training"]
    assert about["config"]["model_name"] == "toy"
    assert about["config"]["seed"] == 0
    assert about["updates"] == 4
    assert about["last"]["reward"] == lines[-1]["reward"]
    policy = f"learned:{directory / 'policy'}"
    for done in generate(toy_model(), prompts(2), policy=policy, gen_length=8):
        assert done.passes <= 8


def test_the_best_on_validation_is_kept(whole) -> None:
    _, lines, directory = whole
    found = [line["validation"] for line in lines if "validation" in line]
    for one in found:
        assert one["score"] == pytest.approx(one["accuracy"] - one["passes"] / 10 / one["n"])
    best = json.loads((directory / "best.json").read_text())["training"]["validation"]
    assert best == max(found, key=lambda one: one["score"])


@pytest.mark.parametrize("info", ["rollout", "log", "state"])
def test_a_killed_run_ends_like_one_that_was_not(whole, tmp_path, monkeypatch, info) -> None:
    """Killed in the third update: while decoding, after its log line, and after its policy."""
    owner, name, when = {
        "rollout": (rollouts.Recorder, "add", 80),
        "log": (Run, "log", 4),
        "state": (Run, "save_state", 4),
    }[info]
    original, calls = getattr(owner, name), []

    def dies(self, *arguments, **named):
        calls.append(1)
        if len(calls) == when and info == "log":
            original(self, *arguments, **named)
        if len(calls) >= when:
            raise Killed
        return original(self, *arguments, **named)

    monkeypatch.setattr(owner, name, dies)
    with pytest.raises(Killed):
        train(tmp_path)
    monkeypatch.undo()
    again, lines = train(tmp_path, resume=True)
    assert 0 < len(lines) < 5
    assert same_weights(again.network, whole[0].network)
    assert timeless(tmp_path) == timeless(whole[2])
    assert same_weights(
        load_policy(tmp_path / "best").network, load_policy(whole[2] / "best").network
    )


def test_two_processes_train_the_same_policy(whole, tmp_path) -> None:
    script = Path(__file__).parents[2] / "policy_toy.py"
    path = os.pathsep.join([str(script.parent), os.environ.get("PYTHONPATH", "")])
    for done in in_two([str(script), str(tmp_path / "run")], PYTHONPATH=path):
        assert done.returncode == 0, done.stderr
    two = load_policy(tmp_path / "run/policy").network
    assert same_weights(two, whole[0].network)


def test_it_learns_to_hurry_when_speed_is_all_that_counts(tmp_path) -> None:
    """Rules without commitment and re-editing: how fast a row stops is the policy's doing."""
    config = replace(
        SMALL,
        updates=25,
        wave=3,
        completion=0.0,
        speed=1.0,
        init="constant:1/8",
        gen_length=8,
        budget="24",
        validate_every=0,
        lr=2e-2,
    )

    class Never(ToyTask):
        def score(self, problem, text, run=None) -> Verdict:
            return Verdict(False, "never")

    rules = {"commit": "off", "reedit_margin": None}
    _, lines = train(tmp_path, config, task=Never(), rules=rules)
    assert lines[-1]["passes_used"] < 0.7 * lines[1]["passes_used"]
    assert lines[-1]["reward"] > lines[1]["reward"] + 0.1
    assert not (tmp_path / "best.json").exists()


def test_it_learns_to_wait_until_it_is_sure(tmp_path) -> None:
    """A third of the rest at every step closes guesses before the chain has reached them."""
    config = PolicyConfig(
        updates=20,
        prompts=4,
        hidden=16,
        init="constant:1/3",
        init_prompts=4,
        init_fits=100,
        validate_every=0,
        lr=1e-2,
    )
    setup = Setup(ChainModel(), ChainTask(), config)
    lines = list(PolicyTraining(setup, list(range(8)), tmp_path))
    right = [line["accuracy"] for line in lines[1:]]
    assert sum(right[:4]) / 4 < 0.5
    assert sum(right[-4:]) / 4 > 0.8


class Always(ToyTask):
    def score(self, problem, text, run=None) -> Verdict:
        return Verdict(True, "always")


def test_without_signal_it_warns_then_stops(tmp_path) -> None:
    config = replace(SMALL, updates=20, patience=5, init="none", validate_every=0)
    training, lines = train(tmp_path, config, task=Always())
    assert training.stalled
    assert len(lines) == 1 + 5
    assert ["warning" in line for line in lines] == [False] * 3 + [True] * 3
    assert "no signal in 5 updates: every rollout was right" in lines[-1]["warning"]
    assert same_weights(load_policy(tmp_path / "policy").network, training.network)
    # it stays stopped until it is given more patience
    assert train(tmp_path, config, resume=True, task=Always())[1] == []
    more = replace(config, patience=6)
    assert len(train(tmp_path, more, resume=True, task=Always())[1]) == 1


def test_every_prompt_of_the_pool_gets_its_turn(tmp_path) -> None:
    training = PolicyTraining(toy_setup(), POOL, tmp_path)
    seen = [p.id for update in range(14) for p in training._problems(update, 3)]
    for turn in range(6):
        assert sorted(seen[turn * 7 : turn * 7 + 7]) == sorted(f"train/{n}" for n in POOL)
    assert seen[:7] != seen[7:14]


def test_problems_that_the_first_policy_failed_come_up_more_often(tmp_path) -> None:
    config = replace(SMALL, hard=0.7, screened=5, updates=2, validate_every=1)
    whole, lines = train(tmp_path / "whole", config)
    assert lines[0]["screened"] == 5
    assert 0 < lines[0]["failed"] == len(whole.failed) < 5  # half of the sums are even
    assert set(whole.failed) < set(POOL[:5])
    drawn = [p.id for update in range(4) for p in whole._problems(update, 2, whole.failed)]
    assert set(drawn) == {f"train/{number}" for number in whole.failed}
    train(tmp_path / "parts", replace(config, updates=1))
    again, _ = train(tmp_path / "parts", config, resume=True)
    assert again.failed == whole.failed
    assert timeless(tmp_path / "parts") == timeless(tmp_path / "whole")
    assert same_weights(again.network, whole.network)


def test_where_nothing_fails_nothing_is_hard(tmp_path) -> None:
    config = replace(SMALL, hard=0.5, updates=1)
    _, lines = train(tmp_path, config, task=Always())
    assert lines[0]["warning"] == "all 7 screened problems were solved: none is hard"
    assert len(lines) == 2


def test_a_directory_holds_one_run(whole) -> None:
    with pytest.raises(InputError, match="already holds a run"):
        PolicyTraining(toy_setup(), POOL, whole[2])
    with pytest.raises(InputError, match="group is 5 but the run"):
        PolicyTraining(toy_setup(replace(SMALL, group=5)), POOL, whole[2], resume=True)
    with pytest.raises(InputError, match="prompt_pool is '3 problems"):
        PolicyTraining(toy_setup(), POOL[:3], whole[2], resume=True)


def test_pictures_are_drawn(whole, tmp_path) -> None:
    assert plot_training(whole[2] / "log.jsonl", tmp_path / "run.png")
    assert plot_policy(whole[0].network, tmp_path / "policy.svg")
    assert (tmp_path / "run.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (tmp_path / "policy.svg").read_text()
    assert not plot_training(tmp_path / "nothing.jsonl", tmp_path / "none.png")

"""run.toml: what is written can be given back; runs of earlier versions go on."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from policy_toy import POOL, toy_setup
from policy_toy import SMALL as POLICY
from small_alignment import SMALL, log_of

from xpredflow import InputError
from xpredflow.settings import configured
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.run_file import RunFile, read_run_file
from xpredflow.training.common.start import Start
from xpredflow.training.policy.trainer import PolicyTraining
from xpredflow.training.pretrain import PretrainConfig
from xpredflow.training.softmask import SoftMaskConfig

ALIGN = replace(SMALL, lora_rank=4, lora_targets="q_proj", checkpointing=True, lr=1e-5)


@pytest.mark.parametrize("config", [ALIGN, POLICY, PretrainConfig(seed=3), SoftMaskConfig(k=1)])
def test_settings_come_back_as_they_were(config: object, tmp_path: Path) -> None:
    RunFile("any", config, {"answers": ["a", "b"]}, {"margin": None}, {"sha": "1"}).write(tmp_path)
    tables = read_run_file(tmp_path / "run.toml", "any")
    assert configured(type(config), tables["settings"], "a file") == config
    assert tables["inputs"] == {"answers": ["a", "b"]}
    assert tables["rules"] == {"margin": "none"}
    assert "checks" not in tables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('command = "align"\n', "belongs to a run of 'align': give it to 'xpredflow align OUT"),
        ("[settigns]\nlr = 1\n", "unknown table 'settigns' .*: did you mean 'settings'"),
        ("lr = = 1\n", "is not TOML"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_run_file(tmp_path / "run.toml", "pretrain")
    with pytest.raises(InputError, match="does not exist"):
        read_run_file(tmp_path / "none.toml", "pretrain")


def as_before(directory: Path, values: dict, renamed: dict[str, str]) -> None:
    """The directory as an earlier version would have left it."""
    (directory / "run.toml").unlink()
    old = {renamed.get(name, name): value for name, value in values.items()}
    (directory / "config.json").write_text(json.dumps(old))


def test_an_alignment_of_an_earlier_version_goes_on(
    start_of: Callable[..., Start], tmp_path: Path
) -> None:
    start, config = start_of("llada"), replace(SMALL, on_policy=0.4)
    whole = Alignment(start, config, tmp_path / "whole")
    list(whole)
    for now in Alignment(start, config, tmp_path / "old"):
        if now.step == 4:
            break
    values = {**asdict(config), "model": "llada", "answers_sha256": "0", "answers": "a, b"}
    del values["keep_reference"]  # a setting that came later has its default
    as_before(tmp_path / "old", values, {"updates": "steps", "on_policy": "walk"})
    with pytest.raises(InputError, match=r"on_policy is 0\.5 but the run .* started with 0\.4"):
        Alignment(start, replace(config, on_policy=0.5), tmp_path / "old", resume=True)
    again = Alignment(start, config, tmp_path / "old", resume=True)
    assert again.step == 3
    list(again)
    assert log_of(again) == log_of(whole)
    assert (tmp_path / "old/run.toml").is_file()


def test_a_policys_training_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    config = replace(POLICY, updates=1, budget=6, validate_every=0)
    training = PolicyTraining(toy_setup(config), POOL, tmp_path)
    list(training)
    values = training.about.values()
    values = {**values, "model": values["model_name"], "budget": "6"}
    del values["model_name"]
    as_before(tmp_path, values, {"budget": "steps", "commit_threshold": "commit_above"})
    with pytest.raises(InputError, match=r"budget is 7 but the run .* was started with 6"):
        PolicyTraining(toy_setup(replace(config, budget=7)), POOL, tmp_path, resume=True)
    ruled = toy_setup(replace(config), rules={"commit_threshold": 0.7})
    with pytest.raises(InputError, match=r"commit_threshold is 0\.7 but the run .* with 'none'"):
        PolicyTraining(ruled, POOL, tmp_path, resume=True)
    again = PolicyTraining(toy_setup(replace(config, updates=2)), POOL, tmp_path, resume=True)
    assert [line["step"] for line in again] == [2]


def test_a_run_under_other_rules_is_another(tmp_path: Path) -> None:
    config = replace(POLICY, updates=1, validate_every=0)
    list(PolicyTraining(toy_setup(config, rules={"tau": 0.8}), POOL, tmp_path))
    with pytest.raises(InputError, match=r"tau is 0\.9 but the run .* was started with 0\.8"):
        PolicyTraining(toy_setup(config), POOL, tmp_path, resume=True)
    with pytest.raises(InputError, match="unknown rule 'tao' of the flow: did you mean 'tau'"):
        PolicyTraining(toy_setup(config, rules={"tao": 0.8}), POOL, tmp_path / "other")
    about = json.loads((tmp_path / "policy.json").read_text())["training"]["config"]
    assert about["tau"] == 0.8
    assert about["commit"] == "before"  # those that were not named stand there too


def test_a_state_without_its_settings_is_not_gone_on_with(
    start_of: Callable[..., Start], tmp_path: Path
) -> None:
    list(Alignment(start_of("llada"), SMALL, tmp_path))
    (tmp_path / "run.toml").unlink()
    with pytest.raises(InputError, match=r"holds a state but no run\.toml"):
        Alignment(start_of("llada"), SMALL, tmp_path, resume=True)

"""Samples are reused for the same weights, problems, rules and policy; what differs is named."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from builders import write_checkpoint
from toy import ToyModel

from xpredflow import InputError, evaluate, load
from xpredflow.evaluation.identity import differences
from xpredflow.models import digests
from xpredflow.models.digests import file_digest, model_digest, weights_digest
from xpredflow.policies.beta import BetaNetwork, save_policy
from xpredflow.tasks import make_task

ROWS = '{"prompt": "2+3=", "answer": 5, "grader": "number"}\n'
OPTIONS = {"decoder": "mask", "budget": 1, "gen_length": 2, "chat": False, "split": "all"}


@pytest.fixture
def task(tmp_path: Path):
    (tmp_path / "mine.jsonl").write_text(ROWS)
    return make_task(str(tmp_path / "mine.jsonl"))


def named_model(directory: Path, seed: int = 0, **how):
    """Every training writes OUT/model: the last part of the path tells nothing apart."""
    place = directory / f"run{seed}" / "model"
    if not place.is_dir():
        torch.manual_seed(seed)
        write_checkpoint(place, "llada", tokenizer=True)
    if seed:
        model = load(place, **how)
        with torch.no_grad():
            model.embedding.mul_(1 + seed / 10)
        return model
    return load(place, **how)


def test_another_model_of_the_same_name_gets_no_samples_of_the_first(task, tmp_path) -> None:
    first, second = named_model(tmp_path), named_model(tmp_path, seed=1)
    assert first.name == second.name == "model"
    evaluate(first, task, out=tmp_path / "out", **OPTIONS)
    with pytest.raises(InputError, match=r"another evaluation \(weights was '\w+' and is '\w+'\)"):
        evaluate(second, task, out=tmp_path / "out", **OPTIONS)
    evaluate(first, task, out=tmp_path / "out", **OPTIONS)  # the same one goes on


def test_another_dtype_and_other_problems_are_named(task, tmp_path: Path) -> None:
    evaluate(named_model(tmp_path), task, out=tmp_path / "out", **OPTIONS)
    half = named_model(tmp_path, dtype="bfloat16")
    with pytest.raises(InputError, match="dtype was 'float32' and is 'bfloat16'"):
        evaluate(half, task, out=tmp_path / "out", **OPTIONS)
    (tmp_path / "mine.jsonl").write_text(ROWS.replace("5", "6"))
    changed = make_task(str(tmp_path / "mine.jsonl"))
    with pytest.raises(InputError, match="problems was"):
        evaluate(named_model(tmp_path), changed, out=tmp_path / "out", **OPTIONS)


def test_a_policy_retrained_under_its_name_is_another(task, tmp_path: Path) -> None:
    flow = {**OPTIONS, "decoder": "flow", "policy": f"learned:{tmp_path / 'best'}"}
    for seed in (1, 2):
        torch.manual_seed(seed)
        save_policy(BetaNetwork(), tmp_path / "best", {})
        if seed == 1:
            evaluate(named_model(tmp_path), task, out=tmp_path / "out", **flow)
    with pytest.raises(InputError, match=r"evaluation \(policy was '\w+' and is '\w+'\)"):
        evaluate(named_model(tmp_path), task, out=tmp_path / "out", **flow)


def test_samples_that_say_nothing_of_their_weights_are_not_taken_for_granted(task, tmp_path):
    from xpredflow.evaluation.samples import Job, Records

    out = tmp_path / "mine.jsonl.out" / "mine.jsonl"
    job = Job("mine", identity={"weights": "abc"})
    Records(out, replace(job, identity={}))
    with pytest.raises(InputError, match="weights was not recorded and is 'abc'"):
        Records(out, job)


def test_differences_are_listed_whole() -> None:
    then = {"a": 1, "rules": {"tau": 0.5, "k": 1}, "b": None}
    now = {"a": 1, "rules": {"tau": 0.9, "k": 1}, "c": 2}
    assert differences(then, now) == "tau was 0.5 and is 0.9; c was not recorded and is 2"
    assert differences(then, then) == ""


def test_digests_follow_the_contents_and_not_the_name(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    found = set()
    for content in (b"one", b"two", b"longer"):
        file.write_bytes(content)
        found |= {file_digest(file), weights_digest(tmp_path)}
    assert len(found) == 6
    assert weights_digest("some/hub-id") == ""
    assert model_digest(ToyModel(1)) == model_digest(ToyModel(1)) != model_digest(ToyModel(2))


def test_large_files_and_tensors_are_read_in_pieces(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(digests, "WHOLE", 2**10)
    monkeypatch.setattr(digests, "PIECE", 2**4)
    file = tmp_path / "large"
    content = bytearray(2**16)
    file.write_bytes(content)
    before = file_digest(file)
    content[-1] = 1  # the last piece ends the file
    file.write_bytes(content)
    assert file_digest(file) != before
    tensor = torch.zeros(10 * digests.VALUES)
    assert len(digests._bytes(tensor)) == 4 * digests.VALUES

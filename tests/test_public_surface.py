"""`from xpredflow import ...`: what is promised is there, says what it does, and works together."""

import inspect
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import torch

import xpredflow
from xpredflow import (
    AlignConfig,
    PolicyConfig,
    align,
    compare,
    evaluate,
    generate,
    load,
    self_generate,
    train_policy,
)

CALLS = ("load", "save", "wrap", "generate", "stream", "astream", "Engine", "align", "train_policy")
CALLS += ("self_generate", "evaluate", "compare", "register", "make_task", "make_decoder")
VALUES = ("Flow", "Rules", "ExtendedFlow", "ExtendedRules", "AlignConfig", "PolicyConfig")
POLICIES = ("Constant", "Confidence", "Uniform", "Jump", "Power", "LearnedPolicy")
PROTOCOLS = ("Model", "Decoder", "Policy", "Task")
EXCHANGED = ("Canvas", "Signals", "StepInfo", "Event", "Action", "Space", "Problem", "Verdict")
EXCHANGED += ("Step", "Frame", "Decoded", "Partial", "StopReason", "Evaluation", "Comparison")
WITH_EXAMPLE = ("load", "save", "wrap", "generate", "decode_steps", "stream", "astream", "Engine")
WITH_EXAMPLE += ("align", "train_policy", "self_generate", "evaluate", "compare", "register")
WITH_EXAMPLE += ("make_task", "make_decoder", "make_policy", "load_policy", "Flow", "SimpleTask")


@pytest.mark.parametrize("name", xpredflow.__all__)
def test_a_public_name_is_there_and_has_a_docstring_of_its_own(name: str) -> None:
    item = getattr(xpredflow, name)
    text = item.__doc__ or ""
    assert text.strip(), name
    # a dataclass without a docstring is given its signature as one
    assert not text.startswith(f"{name}("), name


def test_what_is_promised_is_exported_and_listed_once() -> None:
    names = xpredflow.__all__
    assert {*CALLS, *VALUES, *POLICIES, *PROTOCOLS, *EXCHANGED} <= {*names}
    assert len(names) == len({*names})
    assert {*names, "__version__"} == {*dir(xpredflow)}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="generates"):
        xpredflow.generates  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_a_docstring_shows_how_it_is_called(name: str) -> None:
    text = inspect.getdoc(getattr(xpredflow, name)) or ""
    lines = [line for line in text.splitlines() if "`" not in line]
    # a class one derives from is used in `class Mine(Name):`
    assert any(re.search(rf"(?<![\w.]){name}\)?[(:]", line) for line in lines), text


@pytest.mark.parametrize("name", ["load", "save", "wrap", "generate", "stream", "align"])
def test_parameters_and_results_are_typed(name: str) -> None:
    call = getattr(xpredflow, name)
    hints = get_type_hints(call)
    assert {*inspect.signature(call).parameters} | {"return"} == {*hints}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_can_be_asked_whether_something_follows_it(name: str) -> None:
    assert not isinstance(object(), getattr(xpredflow, name))


def test_the_embedded_model_and_its_parts_follow_the_protocols() -> None:
    model = load("tiny")
    assert isinstance(model, xpredflow.Model)
    assert isinstance(xpredflow.make_decoder("threshold:0.9"), xpredflow.Decoder)
    assert isinstance(xpredflow.make_policy("constant:1/4"), xpredflow.Policy)
    assert isinstance(xpredflow.make_task("minimath"), xpredflow.Task)


def test_from_own_answers_to_a_comparison_in_five_calls(tmp_path: Path) -> None:
    own = self_generate(load("tiny"), "minimath", tmp_path / "own.jsonl", limit=6, budget="1/4")
    assert len(own) == 6

    settings = AlignConfig(updates=2, batch=2, holdout=2)
    aligned = align("tiny", tmp_path / "own.jsonl", settings, out=tmp_path / "aligned")
    model = load(aligned.checkpoint)
    assert model.defaults.aligned
    assert torch.tensor(1e-40).mul(1.0).item() > 0  # a training leaves denormals as they were

    small: dict[str, Any] = {"updates": 2, "prompts": 1, "group": 2, "pool": 2, "init_fits": 5}
    config = PolicyConfig(**small, init_prompts=1, validate_every=2, validation=2, budget="1/8")
    trained = train_policy(model, "minimath", config, out=tmp_path / "policy")
    assert trained.updates == 2

    policy = f"learned:{trained.last}"
    found = evaluate(model, "minimath", limit=2, policy=policy, budget="1/8")
    assert found.summary.rules["policy"] == policy
    assert found.summary.passes_max <= 8
    [answer] = generate(model, found.samples[0].prompt, policy=policy, budget="1/8", gen_length=64)
    assert answer.text == found.samples[0].answer

    table = compare(model, "minimath", [f"flow:{policy}", "mask"], [], ["1/8"], limit=2)
    [ours, theirs] = table.points
    assert (ours.decoder, theirs.decoder) == (f"flow:{policy}", "mask")
    assert ours.found.summary.accuracy == found.summary.accuracy
    assert f"flow:{policy}" in table.page

"""The bench: which options go where, and when samples on disk are those of the job."""

from pathlib import Path
from typing import Any

import pytest
from toy import ToyModel

from xpredflow import InputError, load
from xpredflow.evaluation.identity import problems_digest
from xpredflow.evaluation.run import Job
from xpredflow.experiments import jobs
from xpredflow.experiments.bench import Bench, Plan, Trial, Watch
from xpredflow.experiments.inputs import softness_of
from xpredflow.models.digests import model_digest
from xpredflow.tasks import make_task

MATH = make_task("minimath")
FLOW, MASK = Trial("flow"), Trial("mask")


def plan(**options: Any) -> Plan:
    return Plan((MATH,), options=options)


def test_an_option_goes_to_the_decoders_that_have_it() -> None:
    given = plan(tau="0.8", gen_length="8", temperature="0.5")
    given.check([FLOW, MASK])
    assert given.options_of(FLOW) == {"tau": "0.8", "gen_length": "8"}
    assert given.options_of(MASK) == {"gen_length": "8", "temperature": "0.5"}
    own = Trial("flow", {"tau": 0.7, "gen_length": 4})
    assert given.options_of(own) == own.options
    assert given.positions(MATH) == 8
    assert plan().positions(MATH) == MATH.response_length


def test_options_that_nobody_has_or_that_are_varied_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'tau'"):
        plan(tua="0.8").check([FLOW, MASK])
    with pytest.raises(InputError, match="unknown option 'tau'"):
        plan(tau="0.8").check([MASK])
    with pytest.raises(InputError, match="-o budget: budget is what is varied"):
        plan(budget="4").check([MASK])
    with pytest.raises(InputError, match="gen_length is 'long'"):
        plan(gen_length="long").check([MASK])
    with pytest.raises(InputError, match="no tasks were given"):
        Plan(()).check([MASK])
    with pytest.raises(InputError, match="two tasks are called 'minimath'"):
        Plan((MATH, MATH)).check([MASK])
    with pytest.raises(InputError, match="did you mean 'test'"):
        Plan((MATH,), split="tset").check([MASK])


def test_other_weights_under_the_same_name_are_another_job(tmp_path: Path) -> None:
    names = set()
    (tmp_path / "model.json").write_text("{}")
    for weights in (b"one", b"two"):
        (tmp_path / "model.safetensors").write_bytes(weights)
        source = str(tmp_path)
        names |= {jobs.slug(Job("minimath", decoder="flow", model=source), source, "", {})}
        policy = {"policy": f"learned:{tmp_path / 'model'}"}
        job = Job("minimath", decoder="flow", model="some/id")
        names |= {jobs.slug(job, "some/id", "", policy)}
    assert len(names) == 4
    assert all(name.startswith("minimath-flow-full-") and "." not in name for name in names)


def test_another_dtype_other_problems_and_other_tensors_are_another_job() -> None:
    job = Job("minimath", decoder="mask", model="some/id")
    toys = [ToyModel(), ToyModel()]
    toys[1].embedding = toys[1].embedding + 1
    assert model_digest(toys[0]) == model_digest(ToyModel())
    names = {
        jobs.slug(job, "some/id", "a", {}),
        jobs.slug(job, "some/id", "b", {}),
        jobs.slug(job, "some/id", "a", {"tau": 0.9}),
        jobs.slug(job, "some/id", "a", {}, "bfloat16"),
        *(jobs.slug(job, toy, "a", {}) for toy in toys),
    }
    assert len(names) == 6
    digest = problems_digest(MATH, "validation", 3)
    assert digest == problems_digest(MATH, "validation", 3)
    assert digest != problems_digest(MATH, "validation", 2)
    assert digest != problems_digest(MATH, "test", 3)


class Seen(Watch):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.passes, self.answers, self.said = 0, 0, []

    def say(self, line: str) -> None:
        self.said.append(line)

    def step(self, step: Any) -> None:
        self.passes += len(step.rows)

    def sample(self, sample: Any) -> None:
        self.answers += 1


def test_a_loaded_model_is_measured_with_its_rules_and_its_cap(tmp_path: Path) -> None:
    model = load("tiny")
    given = Plan((MATH,), tmp_path, limit=2, options={"gen_length": "16"})
    trial, seen = Trial("threshold", {"threshold": "0.8", "budget": "1/4"}), Seen()
    with Bench(given, seen) as bench:
        found = bench.measure(model, MATH, trial)
    assert (found.budget, found.cap) == ("1/4 (4 passes)", 4)
    assert found.rules["threshold"] == 0.8
    assert found.rules["decoder"] == "threshold"
    assert seen.answers == 2
    assert seen.passes == 2 * found.summary.passes_mean
    [line] = seen.said
    assert line.startswith("tiny, minimath, threshold, budget 1/4 (4 passes), threshold=0.8: ")
    with Bench(given, seen) as bench:
        assert bench.measure(model, MATH, trial) == found
    assert seen.answers == 2  # the samples were there


@pytest.mark.parametrize("decoder", ["flow", "flow:confidence", "flow+policy=confidence"])
def test_rules_that_the_checkpoint_decides_about_are_recorded(decoder: str) -> None:
    with Bench(Plan((MATH,), limit=1, options={"gen_length": 4})) as bench:
        free, named = (
            bench.measure("tiny", MATH, Trial(decoder, given)).rules
            for given in ({}, {"rules": "paper"})
        )
    assert free["reedit_margin"] is None  # `tiny` was never aligned
    assert named["reedit_margin"] is not None


def test_without_a_directory_nothing_is_kept() -> None:
    with Bench(Plan((MATH,), limit=1, options={"gen_length": 4})) as bench:
        assert bench.measure("tiny", MATH, MASK).summary.passes_mean == 4


def test_what_soft_masking_learned_is_read_beside_the_weights(tmp_path: Path) -> None:
    assert softness_of(str(tmp_path)) == {}
    (tmp_path / "softmask.json").write_text('{"omega_s": 0.5, "k": 1, "steps": 100}')
    assert softness_of(str(tmp_path)) == {"k": 1, "omega_s": 0.5}
    (tmp_path / "softmask.json").write_text("{")
    with pytest.raises(InputError, match=r"softmask\.json' cannot be read"):
        softness_of(str(tmp_path))

"""The bench: which options go where, and when samples on disk are those of the job."""

from pathlib import Path
from typing import Any

import pytest

from xpredflow import InputError
from xpredflow.evaluation import Job
from xpredflow.experiments import bench
from xpredflow.experiments.bench import Plan, Trial
from xpredflow.experiments.softmask import softness_of
from xpredflow.tasks import make_task

MATH = make_task("minimath")
FLOW, MASK = Trial("flow"), Trial("mask")


def plan(**options: Any) -> Plan:
    return Plan((MATH,), Path("out"), options=options)


def test_an_option_goes_to_the_decoders_that_have_it() -> None:
    given = plan(tau="0.8", gen_length="8", temperature="0.5")
    given.check([FLOW, MASK])
    assert given.options_for("flow") == {"tau": "0.8", "gen_length": "8"}
    assert given.options_for("mask") == {"gen_length": "8", "temperature": "0.5"}
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
        Plan((), Path("out")).check([MASK])
    with pytest.raises(InputError, match="did you mean 'test'"):
        Plan((MATH,), Path("out"), split="tset").check([MASK])


def test_other_weights_under_the_same_name_are_another_job(tmp_path: Path) -> None:
    names = set()
    (tmp_path / "model.json").write_text("{}")
    for weights in (b"one", b"two"):
        bench.weights_digest.cache_clear()
        bench.file_digest.cache_clear()
        (tmp_path / "model.safetensors").write_bytes(weights)
        job = Job("minimath", decoder="flow", model=str(tmp_path))
        names |= {bench.slug(job)}
        policy = {"policy": f"learned:{tmp_path / 'model'}"}
        names |= {bench.slug(Job("minimath", decoder="flow", options=policy, model="some/id"))}
    assert len(names) == 4
    assert all(name.startswith("minimath-flow-full-") and "." not in name for name in names)


def test_what_soft_masking_learned_is_read_beside_the_weights(tmp_path: Path) -> None:
    assert softness_of(tmp_path) == {}
    (tmp_path / "softmask.json").write_text('{"omega_s": 0.5, "k": 1, "steps": 100}')
    assert softness_of(tmp_path) == {"k": 1, "omega_s": 0.5}
    (tmp_path / "softmask.json").write_text("{")
    with pytest.raises(InputError, match=r"softmask\.json' cannot be read"):
        softness_of(tmp_path)

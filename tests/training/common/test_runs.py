"""A run's directory: the last good state survives divergence, damage and a full disk."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from small_alignment import SMALL

from xpredflow import InputError
from xpredflow.errors import Recovered, WriteError
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.run_file import RunFile
from xpredflow.training.common.runs import Diverged, Run, read_log, read_state


@dataclass(frozen=True)
class Config:
    lr: float = 0.1


def run_in(directory: Path, resume: bool = False, **checks: str) -> Run:
    return Run(directory, RunFile("any", Config(), checks=checks), resume)


def state(step: int) -> dict:
    return {"step": step, "weights": {"w": torch.full((100,), float(step))}}


def test_what_is_not_finite_is_refused_and_the_last_good_state_stays(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    run.save_state(state(1))
    bad = {"step": 2, "weights": {"w": torch.tensor([1.0, math.nan])}}
    with pytest.raises(Diverged, match=r"w is not finite at update 2; .* after update 1"):
        run.save_state(bad)
    with pytest.raises(Diverged, match="loss is inf at update 3"):
        run.log(step=3, loss=math.inf)
    assert read_state(tmp_path / "state.pt")["step"] == 1
    assert read_log(run.log_path) == []


def test_an_alignment_that_diverges_writes_no_weights(start_of, tmp_path: Path) -> None:
    training = Alignment(start_of("llada"), replace(SMALL, lr=1e8, updates=40), tmp_path)
    with pytest.raises(Diverged, match="the training diverged"):
        list(training)


def test_a_damaged_state_falls_back_to_the_one_before_it(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    for step in (1, 2, 3):
        run.save_state(state(step))
        run.log(step=step)
    path = tmp_path / "state.pt"
    data = bytearray(path.read_bytes())
    at = data.index(bytes(state(3)["weights"]["w"].numpy().data))
    data[at + 7] ^= 1
    path.write_bytes(data)
    again = run_in(tmp_path, resume=True)
    with pytest.warns(Recovered, match=r"state.pt' is damaged .* of update 2"):
        found = again.load_state()
    assert found is not None
    assert torch.equal(found["weights"]["w"], state(2)["weights"]["w"])
    assert [line["step"] for line in read_log(run.log_path)] == [1, 2]


def test_a_byte_changed_anywhere_is_found_or_changes_nothing(tmp_path: Path) -> None:
    run_in(tmp_path).save_state(state(1))
    good = (tmp_path / "state.pt").read_bytes()
    found = 0
    for at in range(0, len(good), 13):
        bad = bytearray(good)
        bad[at] ^= 0x55
        (tmp_path / "bad.pt").write_bytes(bad)
        try:
            read = read_state(tmp_path / "bad.pt")
        except InputError:
            found += 1
            continue
        assert torch.equal(read["weights"]["w"], state(1)["weights"]["w"]), at
    assert found > 50


def test_two_damaged_states_are_an_error_in_a_line(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    for step in (1, 2):
        run.save_state(state(step))
    for name in ("state.pt", "state.before.pt"):
        (tmp_path / name).write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"damaged .*; .* damaged .* start anew"):
        run_in(tmp_path, resume=True).load_state()


def test_a_kill_between_the_two_renames_leaves_the_state_before(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    run.save_state(state(1))
    (tmp_path / "state.pt").rename(tmp_path / "state.before.pt")
    with pytest.raises(InputError, match="already holds a run"):
        run_in(tmp_path)
    found = run_in(tmp_path, resume=True).load_state()
    assert found is not None
    assert found["step"] == 1


def test_a_state_that_cannot_be_written_names_the_one_that_is_kept(tmp_path, monkeypatch) -> None:
    run = run_in(tmp_path)
    run.save_state(state(1))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(WriteError, match=r"No space left .*: make room .* after update 1 is kept"):
        run.save_state(state(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.toml", "state.pt"]
    assert read_state(tmp_path / "state.pt")["step"] == 1


def test_a_run_is_not_resumed_with_other_weights(tmp_path: Path) -> None:
    run_in(tmp_path, weights="abc").save_state(state(1))
    with pytest.raises(InputError, match=r"weights is 'xyz' but the run in .* with 'abc'"):
        run_in(tmp_path, resume=True, weights="xyz")


def test_a_run_from_before_weights_were_recorded_goes_on(tmp_path: Path) -> None:
    run_in(tmp_path).save_state(state(1))
    assert run_in(tmp_path, resume=True, weights="xyz").load_state() is not None


def test_a_log_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n{"prompt": "hi"}\n')
    with pytest.raises(InputError, match=r"log.jsonl, line 2 names no step"):
        read_log(tmp_path / "log.jsonl")

"""Alignment runs: what is trained and what is not, exact resumption, adapters, the log."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_alignment import SMALL, log_of

from xpredflow import InputError, load
from xpredflow.models import publication
from xpredflow.processes import Share
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.progress import WINDOW, Drift
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.plots import plot_alignment
from xpredflow.training.common.start import Start

TABLES = {"llada": "model.transformer.wte.weight", "llada2": "model.word_embeddings.weight"}


EXTENDED = {"on_policy": 0.5, "keep_reference": 0.3, "clean_entropy": 0.1}


@pytest.mark.parametrize("more", [{}, {"lora_rank": 2}, EXTENDED])
def test_a_killed_run_ends_like_one_that_was_not(
    family: str, more: dict, start_of: Callable[..., Start], tmp_path: Path
) -> None:
    start, config = start_of(family), replace(SMALL, **more)
    whole = Alignment(start, config, tmp_path / "whole")
    list(whole)
    killed = Alignment(start, config, tmp_path / "killed")
    original = killed._update

    def dies():
        if killed.step == 5:
            raise KeyboardInterrupt
        return original()

    killed._update = dies
    with pytest.raises(KeyboardInterrupt):
        list(killed)
    again = Alignment(start, config, tmp_path / "killed", resume=True)
    assert again.step == 3
    list(again)
    assert log_of(again) == log_of(whole)
    whole.finish(tmp_path / "a")
    again.finish(tmp_path / "b")
    for name in ("model.safetensors", "alignment.json", "config.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_weights_and_their_report_appear_together(
    start_of: Callable[..., Start], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Alignment(start_of("llada"), replace(SMALL, updates=1), tmp_path / "run")
    list(training)
    drafts, publish = [], publication._publish

    def killed(draft: Path, directory: Path) -> None:
        if directory.name != "model":  # written to be measured
            return publish(draft, directory)
        drafts.append({file.name for file in draft.iterdir()})
        raise KeyboardInterrupt

    monkeypatch.setattr(publication, "_publish", killed)
    with pytest.raises(KeyboardInterrupt):
        training.finish(tmp_path / "model")
    assert {"model.safetensors", "alignment.json", "generation_config.json"} <= drafts[0]
    assert list((tmp_path / "model").iterdir()) == []


def test_everything_is_trained_but_the_embedding(
    family: str, start_of: Callable[..., Start], tmp_path: Path
) -> None:
    start = start_of(family)
    training = Alignment(start, SMALL, tmp_path / "run")
    list(training)
    training.finish(tmp_path / "model")
    before, after = start.load().state_dict(), load(tmp_path / "model").state_dict()  # type: ignore[attr-defined]
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same - {n for n in same if "expert_bias" in n} == {TABLES[family]}
    assert training.objective.model.embedding.grad is None


def test_the_log_holds_every_step_and_the_reference_starts_equal(
    family: str, start_of: Callable[..., Start], tmp_path: Path
) -> None:
    training = Alignment(start_of(family), SMALL, tmp_path / "run")
    list(training)
    log = log_of(training)
    assert [line["step"] for line in log] == list(range(1, 8))
    assert log[0]["ce_masked"] == log[0]["reference_ce_masked"]
    assert log[-1]["ce_masked"] != log[-1]["reference_ce_masked"]
    for line in log:
        low, high = sorted((line["mse_masked"], line["mse_unmasked"]))
        assert low <= line["loss"] <= high
    assert plot_alignment(training.run.log_path, tmp_path / "losses.png")
    assert (tmp_path / "losses.png").stat().st_size > 10_000


def test_alignment_brings_clean_tokens_back(start_of: Callable[..., Start], tmp_path: Path) -> None:
    config = replace(SMALL, updates=60, batch=8, lr=1e-2)
    training = Alignment(start_of("llada"), config, tmp_path / "run")
    list(training)
    log = log_of(training)
    assert log[-1]["mse_unmasked"] < 0.5 * log[0]["mse_unmasked"]
    after = training.finish(tmp_path / "model")
    assert after is not None
    assert training.before.agreement < 0.1 < 0.5 < after.agreement
    assert after.distance < training.before.distance
    report = json.loads((tmp_path / "model/alignment.json").read_text())
    assert report["after"]["agreement"] == after.agreement
    assert report["before"]["distance"] == training.before.distance
    assert report["config"]["lr"] == 1e-2
    assert report["held_out"] == 6


def test_parts_of_a_batch_make_the_same_update(
    family: str, start_of: Callable[..., Start], tmp_path: Path
) -> None:
    logs = []
    for accumulate in (1, 4):
        config = replace(SMALL, accumulate=accumulate, updates=4)
        training = Alignment(start_of(family), config, tmp_path / f"run{accumulate}")
        list(training)
        logs.append(log_of(training))
    for one, four in zip(*logs, strict=True):
        assert four == pytest.approx(one, rel=1e-4)


@pytest.mark.parametrize("rank", [0, 2])
def test_predictions_at_masks_stay_with_the_reference_if_wished(
    rank: int, start_of: Callable[..., Start], tmp_path: Path
) -> None:
    start = start_of("llada")
    config = replace(SMALL, updates=30, lora_rank=rank)

    def drift(name: str, weight: float) -> float:
        run = Alignment(start, replace(config, keep_reference=weight), tmp_path / name)
        last = list(run)[-1]
        assert last.ce_masked is not None
        assert last.reference_ce_masked is not None
        return abs(last.ce_masked / last.reference_ce_masked - 1)

    assert drift("kept", 10.0) < drift("free", 0.0) / 4


def test_on_policy_states_are_counted_apart(
    family: str, start_of: Callable[..., Start], tmp_path: Path
) -> None:
    plain = next(iter(Alignment(start_of(family), SMALL, tmp_path / "plain")))
    run = Alignment(start_of(family), replace(SMALL, on_policy=0.5), tmp_path / "on_policy")
    on_policy = next(iter(run))
    assert plain.mse_on_policy is None
    assert on_policy.mse_on_policy is not None
    assert on_policy.mse_masked != plain.mse_masked  # of fewer rows
    # nothing is trained yet: in the rows without on-policy states both saw the same
    assert on_policy.ce_masked == pytest.approx(on_policy.reference_ce_masked)


def test_the_reference_is_looked_at_as_often_as_wished(
    start_of: Callable[..., Start], tmp_path: Path
) -> None:
    for every, known in ((3, [1, 4, 7]), (0, [])):
        config = replace(SMALL, reference_every=every)
        training = Alignment(start_of("llada"), config, tmp_path / f"run{every}")
        list(training)
        log = log_of(training)
        assert [x["step"] for x in log if x["reference_ce_masked"] is not None] == known
    assert training.reference is None


def test_weights_are_written_as_they_were_stored(
    start_of: Callable[..., Start], tmp_path: Path
) -> None:
    start = start_of("llada", torch.bfloat16)
    for wished, expected in ((None, torch.bfloat16), ("float16", torch.float16)):
        config = replace(SMALL, updates=2, dtype=wished)
        training = Alignment(start, config, tmp_path / f"run-{wished}")
        assert training.objective.model.embedding.dtype == torch.float32
        list(training)
        training.finish(tmp_path / f"model-{wished}")
        model = load(tmp_path / f"model-{wished}")
        assert model.stored_dtype == expected
        width = torch.float32 if expected == torch.float16 else expected  # as a CPU computes
        assert {t.dtype for t in model.state_dict().values()} == {width}  # type: ignore[attr-defined]
        if wished is None:
            assert torch.equal(model.embedding, start.load().embedding)


@pytest.mark.parametrize("rank", [0, 2])
def test_bf16_products_learn_nearly_the_same(
    rank: int, family: str, start_of: Callable[..., Start], tmp_path: Path
) -> None:
    logs = []
    for precision in ("float32", "bfloat16"):
        config = replace(SMALL, precision=precision, lora_rank=rank, lr=1e-4)
        training = Alignment(start_of(family), config, tmp_path / precision)
        assert all(p.dtype == torch.float32 for p in training.parameters.values())
        list(training)
        logs.append(log_of(training))
    for exact, rounded in zip(*logs, strict=True):
        assert rounded != exact
        assert rounded["loss"] == pytest.approx(exact["loss"], rel=0.05)
        assert rounded["ce_masked"] == pytest.approx(exact["ce_masked"], rel=0.05)


def test_drift_warns_once() -> None:
    drift = Drift()
    assert [drift.add(1.0, 1.0) for _ in range(WINDOW)] == [None] * WINDOW
    warnings = [drift.add(1.2, 1.0) for _ in range(3 * WINDOW)]
    first = next(i for i, warning in enumerate(warnings) if warning)
    assert first == 5  # the mean of 14 ones and six 1.2 is the first above 1.05
    assert "6.0% above the reference's over the last 20 steps" in (warnings[first] or "")
    assert warnings[first + 1 :] == [None] * (3 * WINDOW - 6)


def test_a_run_goes_on_with_the_same_answers_only(
    start_of: Callable[..., Start], tmp_path: Path
) -> None:
    start = replace(start_of("llada"), inputs={"answers": ["a.jsonl"]})
    list(Alignment(start, SMALL, tmp_path / "run"))
    moved = replace(start, inputs={"answers": ["b.jsonl"]})
    assert Alignment(moved, SMALL, tmp_path / "run", resume=True).step == 7
    other = replace(start, checks={"answers_sha256": "2"})
    with pytest.raises(InputError, match="answers_sha256 is '2' but the run"):
        Alignment(other, SMALL, tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"updates": 0}, "updates is 0: expected a number ≥ 1"),
        ({"lora_rank": -1}, "lora_rank is -1: expected a number ≥ 0"),
        ({"lr": 0.0}, "lr is 0.0: expected a number > 0"),
        ({"lora_targets": "q_proj"}, "but lora_rank is 0"),
        ({"dtype": "int8"}, "dtype is 'int8': expected 'float32', 'bfloat16' or 'float16'"),
        ({"on_policy": 1.0}, "on_policy is 1.0: expected a number < 1"),
        (
            {"on_policy_block": 8, "on_policy_states": "predictions"},
            "on_policy_block is 8, but on_policy_states is 'predictions'",
        ),
        ({"keep_reference": -1.0}, "keep_reference is -1.0: expected a number ≥ 0"),
        ({"keep_reference": 0.1, "reference_every": 4}, "reference_every is 4, but keep_reference"),
    ],
)
def test_bad_settings_are_named(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SMALL, **values)


def test_processes_share_a_batch_evenly() -> None:
    assert replace(SMALL, batch=24, accumulate=3).parts(Share(0, 2)) == 3
    with pytest.raises(InputError, match=r"batch is 4, which 3 process.* give a multiple of 3"):
        SMALL.parts(Share(0, 3))


def test_large_models_take_smaller_parts_and_compute_activations_again() -> None:
    plain, size = AlignConfig(), 8_000_000_000
    assert [plain.parts(Share(), longest, size) for longest in (128, 512, 1000, 9000)] == [
        *(1, 4, 8, 32),
    ]
    assert plain.parts(Share(3, 8), 1024, size) == 1
    assert plain.parts(Share(), 1024, 999_999_999) == 1
    assert replace(plain, accumulate=2).parts(Share(), 1024, size) == 2
    assert plain.recomputes(size)
    assert not plain.recomputes(999_999_999)
    assert not replace(plain, checkpointing=False).recomputes(size)


def test_the_rate_warms_up_and_falls_to_zero() -> None:
    config = replace(SMALL, updates=10, warmup=2, lr=1.0)
    rates = [config.rate(step) for step in range(10)]
    assert rates[0] == 0.5
    assert rates[1] == rates[2] == 1.0
    assert rates[2:] == [pytest.approx((10 - step) / 8) for step in range(2, 10)]
    assert config.rate(10) == 0

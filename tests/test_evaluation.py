"""Evaluation: samples that depend on their number alone, files that survive a kill, statistics."""

import json
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import pytest
from builders import write_checkpoint
from scipy import stats

from xpredflow import InputError, load
from xpredflow.evaluation.run import Job, Records, Sample, evaluate, pass_at_k, summarise, wilson
from xpredflow.tasks import Problem, Runner, Verdict


class Parity:
    """Right answers are those whose text has an even number of bytes: a model gets some right."""

    name = "parity"
    response_length = 6
    runs_programs = False

    def problem(self, split: str, index: int) -> Problem:
        return Problem(f"{split}-{index}", "x" * (index % 7) + str(index), 1, {})

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        even = len(text.encode()) % 2 == 0
        return Verdict(even, "even" if even else "odd")

    def size(self, split: str) -> int:
        return 1000

    def count_problems(self) -> int:
        return 1000


JOB = Job("parity", decoder="mask", limit=9, options={"temperature": 1.0, "max_batch": 3})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("llada")
    write_checkpoint(path, "llada", tokenizer=True)
    return load(path)


def test_a_killed_evaluation_goes_on_without_repeating_or_losing(model, tmp_path: Path) -> None:
    whole = evaluate(model, Parity(), JOB)
    out, seen = tmp_path / "samples.jsonl", []

    def dies(sample: Sample) -> None:
        seen.append(sample.number)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(model, Parity(), JOB, out=out, watch=dies)
    with out.open("a") as file:
        file.write('{"number": 8, "probl')  # the line that a kill cut short
    already = len(out.read_text().splitlines()) - 2
    fresh: list[int] = []
    again = evaluate(model, Parity(), JOB, out=out, watch=lambda s: fresh.append(s.number))
    assert again == whole
    assert len(fresh) == 9 - already
    numbers = [json.loads(line)["number"] for line in out.read_text().splitlines()[1:]]
    assert sorted(numbers) == list(range(9))


def test_several_processes_share_the_same_samples(model) -> None:
    whole = evaluate(model, Parity(), JOB)
    parts = [evaluate(model, Parity(), JOB, share=(rank, 2)) for rank in range(2)]
    assert sorted(parts[0] + parts[1], key=lambda s: s.number) == whole
    assert summarise(parts[0] + parts[1], JOB) == summarise(whole, JOB)


def test_several_samples_per_problem_are_different_draws(model) -> None:
    job = Job("parity", decoder="mask", limit=3, samples=4, options={"temperature": 1.0})
    samples = evaluate(model, Parity(), job)
    assert [s.problem for s in samples] == [f"test-{i // 4}" for i in range(12)]
    assert len({s.answer for s in samples[:4]}) > 1
    summary = summarise(samples, job)
    assert sorted(summary.pass_at) == [1, 2]
    assert summary.pass_at[1] == pytest.approx(summary.accuracy)
    assert summary.passes_max == 6


def test_a_file_of_another_evaluation_is_left_alone(model, tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    evaluate(model, Parity(), JOB, out=out)
    before = out.read_text()
    other = Job("parity", decoder="threshold", limit=9)
    with pytest.raises(InputError, match="holds samples of another evaluation"):
        evaluate(model, Parity(), other, out=out)
    assert out.read_text() == before


def test_the_order_of_options_does_not_make_another_evaluation(tmp_path: Path) -> None:
    path, options = tmp_path / "out.jsonl", {"budget": 2, "policy": "confidence"}
    path.write_text(json.dumps({"job": asdict(Job("parity", options=options))}) + "\n")
    Records(path, Job("parity", options=dict(reversed(options.items()))))
    with pytest.raises(InputError, match="another evaluation"):
        Records(path, Job("parity", options={**options, "budget": 3}))


def test_the_interval_is_wilsons() -> None:
    for right, n in [(0, 10), (3, 10), (450, 500), (500, 500)]:
        exact = stats.binomtest(right, n).proportion_ci(method="wilson")
        assert wilson(right, n) == pytest.approx((exact.low, exact.high), abs=1e-6)


def test_pass_at_k_counts_all_draws() -> None:
    for n, right, k in [(5, 0, 2), (5, 2, 2), (6, 3, 4), (4, 4, 1)]:
        draws = list(combinations([True] * right + [False] * (n - right), k))
        assert pass_at_k(n, right, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_bad_jobs_are_named() -> None:
    with pytest.raises(InputError, match="limit is 0"):
        Job("parity", limit=0)

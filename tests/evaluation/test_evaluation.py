"""Evaluation: samples that depend on their number alone, files that survive a kill, statistics."""

import json
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from builders import write_checkpoint
from scipy import stats

from xpredflow import InputError, load
from xpredflow.evaluation import (
    Job,
    Sample,
    Watch,
    evaluate,
    evaluate_job,
    mcnemar,
    summarise,
)
from xpredflow.evaluation.samples import Records
from xpredflow.evaluation.statistics import holm, pass_at_k, wilson
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
    whole = evaluate_job(model, Parity(), JOB)
    out, seen = tmp_path / "samples.jsonl", []

    def dies(sample: Sample) -> None:
        seen.append(sample.number)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_job(model, Parity(), JOB, out=out, watch=dies)
    with out.open("a") as file:
        file.write('{"number": 8, "probl')  # the line that a kill cut short
    already = len(out.read_text().splitlines()) - 2
    fresh: list[int] = []
    again = evaluate_job(model, Parity(), JOB, out=out, watch=lambda s: fresh.append(s.number))
    assert again == whole
    assert len(fresh) == 9 - already
    numbers = [json.loads(line)["number"] for line in out.read_text().splitlines()[1:]]
    assert sorted(numbers) == list(range(9))


def test_several_processes_share_the_same_samples(model) -> None:
    whole = evaluate_job(model, Parity(), JOB)
    parts = [evaluate_job(model, Parity(), JOB, share=(rank, 2)) for rank in range(2)]
    assert sorted(parts[0] + parts[1], key=lambda s: s.number) == whole
    assert summarise(parts[0] + parts[1], JOB) == summarise(whole, JOB)


def test_several_samples_per_problem_are_different_draws(model) -> None:
    job = Job("parity", decoder="mask", limit=3, samples=4, options={"temperature": 1.0})
    samples = evaluate_job(model, Parity(), job)
    assert [s.problem for s in samples] == [f"validation-{i // 4}" for i in range(12)]
    assert len({s.answer for s in samples[:4]}) > 1
    summary = summarise(samples, job)
    assert sorted(summary.pass_at) == [1, 2]
    assert summary.pass_at[1] == pytest.approx(summary.accuracy)
    assert summary.passes_max == 6


def test_a_file_of_another_evaluation_is_left_alone(model, tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    evaluate_job(model, Parity(), JOB, out=out)
    before = out.read_text()
    other = Job("parity", decoder="threshold", limit=9)
    with pytest.raises(InputError, match="holds samples of another evaluation"):
        evaluate_job(model, Parity(), other, out=out)
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


def sample(number: int, passed: bool, problem: str = "p") -> Sample:
    return Sample(number, f"{problem}{number}", "", "", passed, "", 1, 1, 0)


def test_the_paired_test_is_mcnemars_exact_one() -> None:
    for both, only_first, only_second in [(5, 0, 0), (3, 6, 1), (0, 2, 9), (40, 130, 90)]:
        results = [(1, 1)] * both + [(1, 0)] * only_first + [(0, 1)] * only_second + [(0, 0)]
        first = [sample(i, bool(a)) for i, (a, _) in enumerate(results)]
        second = [sample(i, bool(b)) for i, (_, b) in enumerate(results)]
        found = mcnemar(first, second[::-1])
        assert found[:2] == (only_first, only_second)
        n = only_first + only_second
        exact = stats.binomtest(only_first, n).pvalue if n else 1.0
        assert found.p == pytest.approx(exact, rel=1e-9)
    for other in ([sample(0, True)], [sample(0, True), sample(1, True, problem="q")]):
        with pytest.raises(InputError, match="not of the same problems"):
            mcnemar([sample(0, True), sample(1, False)], other)


OPTIONS = {"temperature": 1.0, "max_batch": 3}


def test_the_row_says_which_rules_the_checkpoint_decided_for() -> None:
    for name, policy, reedits in (("tiny", "jump:0.9", False), ("tiny-aligned", "learned:", True)):
        rules = evaluate(load(name), Parity(), limit=1).summary.rules
        assert rules["decoder"] == "flow"
        assert policy in rules["policy"]
        assert (rules["reedit_margin"] is not None) == reedits


def test_one_call_gives_the_row_and_the_samples(model, tmp_path: Path) -> None:
    found = evaluate(
        model, Parity(), decoder="mask", limit=9, budget="1/2", out=tmp_path, **OPTIONS
    )
    assert [s.problem for s in found.samples] == [f"validation-{i}" for i in range(9)]
    row = found.summary
    assert row.budget == "1/2 (3 passes)"
    assert (row.n, row.passes_max, row.decoder) == (9, 3, "mask")
    assert row.accuracy == sum(s.passed for s in found.samples) / 9
    assert row.rules["temperature"] == 1.0
    seen: list[Sample] = []
    same: dict[str, Any] = {"decoder": "mask", "limit": 9, "budget": "1/2", "out": tmp_path}
    again = evaluate(
        *(model, Parity()),
        **same,
        **OPTIONS,
        watch=seen.append,
    )
    assert again == found
    assert seen == []
    assert [path.name for path in tmp_path.iterdir()] == ["parity.jsonl"]


def test_who_watches_sees_every_pass_and_every_sample(model) -> None:
    class Counter(Watch):
        left = at_most = passes = 0

        def __init__(self) -> None:
            self.seen: list[int] = []

        def begin(self, left: int, passes: int) -> None:
            self.left, self.at_most = left, left * passes

        def step(self, step) -> None:
            self.passes += len(step.rows)

        def sample(self, sample) -> None:
            self.seen.append(sample.number)

    counter = Counter()
    found = evaluate(model, Parity(), decoder="mask", limit=5, budget=4, watch=counter)
    assert (counter.left, counter.at_most, sorted(counter.seen)) == (5, 20, list(range(5)))
    assert counter.passes == sum(s.passes for s in found.samples) == 20


def test_other_problems_under_the_same_name_are_another_evaluation(model, tmp_path: Path) -> None:
    task = Parity()
    evaluate(model, task, decoder="mask", limit=1, out=tmp_path)
    task.digest = "changed"  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="another evaluation"):
        evaluate(model, task, decoder="mask", limit=1, out=tmp_path)


def test_samples_of_an_older_version_are_reused_where_they_can_be(model, tmp_path: Path) -> None:
    out = tmp_path / "old.jsonl"
    whole = evaluate_job(model, Parity(), JOB, out=out)
    header, *lines = out.read_text().split("\n")
    old = json.loads(header)
    del old["job"]["data"]  # what the first files said nothing of
    out.write_text("\n".join([json.dumps(old), *lines]))
    fresh: list[Sample] = []
    assert evaluate_job(model, Parity(), JOB, out=out, watch=fresh.append) == whole
    assert fresh == []
    out.write_text(out.read_text().replace('"passes"', '"steps"'))
    with pytest.raises(InputError, match=r"line 2 is no sample .* another version"):
        evaluate_job(model, Parity(), JOB, out=out)


def test_odd_characters_survive_the_file(tmp_path: Path) -> None:
    odd = Sample(0, "p", "a\u2028b", "c\u0085d\ud800", True, "", 1, 1, 0)
    Records(tmp_path / "a.jsonl", JOB).add(odd)
    assert Records(tmp_path / "a.jsonl", JOB).done == {0: odd}


def test_bad_jobs_are_named(model, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="limit is 0"):
        Job("parity", limit=0)
    misspelt: dict[str, Any] = {"tempratur": 1}
    with pytest.raises(InputError, match="unknown option 'tempratur'"):
        evaluate(model, Parity(), decoder="mask", **misspelt)
    with pytest.raises(InputError, match="unknown task 'minimat'"):
        evaluate(model, "minimat")
    job = Job("parity", options={"policy": object()})
    with pytest.raises(InputError, match="cannot be written to a file"):
        Records(tmp_path / "a.jsonl", job)


def test_holm_corrects_several_tests_in_their_order() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []

"""Settings chosen on some problems and shown on others, on made-up results."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from made_up import measured

from xpredflow import InputError
from xpredflow.evaluation import Sample
from xpredflow.experiments.bench import Measured, Plan, Trial
from xpredflow.experiments.choice import (
    Candidate,
    Chosen,
    choose,
    equal_field,
    paired,
    pooled,
    targets_in_passes,
)
from xpredflow.experiments.chosen_plot import draw_chosen
from xpredflow.experiments.chosen_report import NONE_SO_FAST, chosen_report
from xpredflow.experiments.compare_chosen import compare_chosen
from xpredflow.experiments.contenders import Variant
from xpredflow.tasks import make_task


def candidate(
    decoder: str, setting: str, right: int, passes: float, weights: str = "aligned"
) -> Candidate:
    variant = Variant(setting, Trial(decoder, {"value": setting}))
    return Candidate("minimath", decoder, weights, variant, measured(right, float(passes)))


def answered(marks: str, first: int = 0) -> Measured:
    """A result of which each sample is right (x) or wrong (.)."""
    samples = tuple(
        Sample(first + i, f"p{first + i}", "", "", mark == "x", "", 2 + i, 4, 0, 128, 0.5)
        for i, mark in enumerate(marks)
    )
    return replace(measured(marks.count("x")), samples=samples)


def test_every_decoder_has_as_many_settings_and_the_same_caps() -> None:
    sweeps = ["threshold:0.7,0.9", "eb:0.1,0.5", "mask+budget=2,4,8,16"]
    field = equal_field([], sweeps, ["1/8", "full"])
    assert [len(one.variants) for one in field] == [4, 4, 4]
    assert [variant.trial.options for variant in field[0].variants] == [
        {"budget": "1/8", "threshold": "0.7"},
        {"budget": "full", "threshold": "0.7"},
        {"budget": "1/8", "threshold": "0.9"},
        {"budget": "full", "threshold": "0.9"},
    ]
    with pytest.raises(InputError, match=r"\(threshold:0\.7,0\.9 has 4, eb:0\.1 has 2\)"):
        equal_field([], ["threshold:0.7,0.9", "eb:0.1"], ["1/8", "full"])


def test_the_best_within_a_target_is_chosen_whichever_weights_it_needs() -> None:
    candidates = [
        candidate("flow", "0.7", 80, 3),
        candidate("flow", "0.9", 90, 6),
        candidate("eb", "0.1", 85, 5.5),
        candidate("eb", "0.5", 85, 4.5),
        candidate("eb", "0.1", 85, 4.5, "original"),
        candidate("eb", "0.5", 95, 8, "original"),
    ]
    chosen = choose(candidates, [4, 6, 8])
    assert [(one.target, one.decoder) for one in chosen[:2]] == [(4, "flow"), (4, "eb")]
    assert [one.candidate and (one.weights, one.candidate.variant.setting) for one in chosen] == [
        ("aligned", "0.7"),
        None,
        ("aligned", "0.9"),
        ("aligned", "0.5"),  # of equals the one with fewer passes, then the first
        ("aligned", "0.9"),
        ("original", "0.5"),
    ]


def test_targets_are_passes_or_shares() -> None:
    assert targets_in_passes(["1/8", "4", 16, "1/4"], 64) == [4, 8, 16]
    assert targets_in_passes(["1/8"], 128) == [16]
    assert targets_in_passes(["4.5", 0.25, 6.5], 64) == [4.5, 6.5, 16]
    with pytest.raises(InputError, match="budget is 'many'"):
        targets_in_passes(["many"], 64)
    with pytest.raises(InputError, match="no targets"):
        targets_in_passes([], 64)


def test_lists_of_problems_are_taken_together() -> None:
    both = pooled([answered("x.x"), answered("xxx")])
    assert (both.summary.n, both.summary.accuracy) == (6, pytest.approx(5 / 6))
    assert [sample.number for sample in both.samples] == list(range(6))
    assert both.summary.passes_mean == 3
    assert (both.summary.read_mean, both.summary.seconds_mean) == (128, 0.5)
    assert both.budget == "1/4 (16 passes)"


def test_problems_may_not_count_twice() -> None:
    task = make_task("minimath")
    with pytest.raises(InputError, match="the same problems in every draw"):
        compare_chosen("no/model", [task], ["mask"], budgets=["1/4"], draws=[[task]], limit=2)


def shown(marks: dict[str, str]) -> list[tuple[Chosen, Measured]]:
    return [
        (Chosen("minimath", 4, name, candidate(name, "0.5", 80, 3)), answered(own))
        for name, own in marks.items()
    ]


def test_pairs_are_tested_against_the_first_and_corrected() -> None:
    tests = paired(shown({"flow": "x" * 10, "eb": "." * 10, "mask": "x" * 9 + "."}), "flow")
    assert tests[0] is None
    eb, mask = tests[1:]
    assert eb is not None
    assert mask is not None
    assert (eb.only_this, eb.only_reference, mask.only_reference) == (0, 10, 1)
    assert eb.p == pytest.approx(2 / 2**10)
    assert eb.corrected == pytest.approx(2 * eb.p)
    assert (mask.p, mask.corrected) == (1.0, 1.0)


def test_settings_that_meet_at_two_targets_are_tested_once() -> None:
    once = shown({"flow": "x" * 6, "eb": "." * 6})
    again = [(replace(one, target=8), found) for one, found in once]
    first, second = paired(once, "flow")[1], paired([*once, *again], "flow")[3]
    assert first == second
    assert first is not None
    assert first.corrected == first.p


def test_the_page_has_no_opinion() -> None:
    field = equal_field(["flow", "eb"], [], ["1/4"])
    found = shown({"flow": "xx..", "eb": "x..."})
    slow = Chosen("minimath", 2, "eb", None)
    plan = Plan((make_task("minimath"),), limit=4)
    plans = [replace(plan, split="test")] * 2
    chosen = [slow, *(one for one, _ in found)]
    report = chosen_report(chosen, found, paired(found, "flow"), field, "tiny-aligned", plan, plans)
    assert report.rows[0][:5] == ["minimath", "2", "eb", "–", NONE_SO_FAST]
    assert all(len(row) == len(report.header) for row in report.rows)
    assert report.rows[1][-2:] == ["reference", "–"]
    assert report.rows[2][3:7] == ["aligned", "0.5", "1/4 (16 passes)", "1.0 [0.2, 5.4]"]
    assert report.rows[2][-2:] == ["0 / 1", "1"]
    assert report.notes[0] == (
        "1 settings of each decoder, chosen on validation (4 of minimath) and shown once on test (8"
        " of minimath, 2 draws together)."
    )
    assert not any("leads" in note for note in report.notes)
    assert report.data["chosen"][0]["setting"] is None
    assert report.data["chosen"][2]["against"]["only_reference"] == 1


def test_a_setting_is_one_dot_with_its_interval(tmp_path: Path) -> None:
    once = shown({"flow": "xx..", "eb": "x..."})
    again = [(replace(one, target=8), found) for one, found in once]
    figures: list[Any] = []
    with patch("xpredflow.experiments.chosen_plot.save_figure", lambda f, _: figures.append(f)):
        assert draw_chosen([*once, *again], tmp_path / "chosen.png", "tiny-aligned")
    [axes] = figures[0].axes
    assert axes.get_title() == "minimath, n = 100"
    assert [len(bars.lines[0].get_xdata()) for bars in axes.containers] == [1, 1]


def test_a_name_has_the_settings_that_were_chosen_and_other_weights(tmp_path: Path) -> None:
    swept, plain = "flow+rules=paper+tau=0.7,0.8", "eb:0.2,0.5"
    once = shown({swept: "xx..", plain: "x...", "mask": "x..."})
    chosen, found = once[1]
    assert chosen.candidate is not None
    other = replace(chosen, candidate=replace(chosen.candidate, weights="tiny"))
    figures: list[Any] = []
    with patch("xpredflow.experiments.chosen_plot.save_figure", lambda f, _: figures.append(f)):
        assert draw_chosen([once[0], (other, found), once[2]], tmp_path / "chosen.png", "tiny")
    told = [text.get_text() for text in figures[0].axes[0].texts]
    assert sorted(told) == ["eb:0.5 (on tiny)", "flow+rules=paper+tau=0.5", "mask"]

"""Specs, areas and fronts with exact values."""

from math import log

import pytest
from made_up import measured

from xpredflow import InputError
from xpredflow.experiments.bench import Bench, Plan, Trial
from xpredflow.experiments.compare_report import area_grid, areas_of, compared
from xpredflow.experiments.contenders import contenders, distinct_budgets
from xpredflow.experiments.parallelism import Point, area, staircase, unbeaten
from xpredflow.experiments.rules import rules_lines
from xpredflow.tasks import make_task


def test_the_area_is_a_mean_over_log_shares() -> None:
    assert area([(1 / 20, 1.0)]) == pytest.approx(1)
    assert area([(0.01, 0.5)]) == pytest.approx(0.5)  # what is faster counts from 1/20 on
    assert area([(1.0, 1.0)]) == 0
    assert area([]) == 0
    # half of the log scale without a point, the other half at 0.8
    assert area([(20**-0.5, 0.8)]) == pytest.approx(0.4)
    stairs = [(0.1, 0.4), (0.4, 0.3), (0.5, 0.9), (1.5, 1.0)]  # one point is worse, one too late
    expected = (0.4 * (log(0.5) - log(0.1)) + 0.9 * (0 - log(0.5))) / log(20)
    assert area(stairs) == pytest.approx(expected)
    assert area(reversed(stairs)) == pytest.approx(expected)


def test_a_better_point_never_lowers_the_area() -> None:
    points = [(0.1, 0.4), (0.5, 0.9)]
    assert area([*points, (0.3, 0.6)]) > area(points)
    assert area([*points, (0.3, 0.2)]) == pytest.approx(area(points))


def test_the_front_and_the_staircase() -> None:
    points = [(0.1, 0.4), (0.4, 0.3), (0.5, 0.9), (0.5, 0.8), (0.1, 0.4), (0.6, 0.9)]
    assert unbeaten(points) == [True, False, True, False, True, False]
    assert staircase(points) == [(0.1, 0.4), (0.5, 0.9)]


def test_a_decoder_runs_under_every_budget() -> None:
    [mask] = contenders(["mask"], [], ["1/4", "full"])
    assert [variant.trial for variant in mask.variants] == [
        Trial("mask", {"budget": "1/4"}),
        Trial("mask", {"budget": "full"}),
    ]
    assert {variant.setting for variant in mask.variants} == {""}


def test_a_sweep_runs_each_value_at_full_budget() -> None:
    sweeps = ["threshold:0.5, 0.9", "flow:power:8+top_k=2+tau=0.7,0.9", "mask+steps=1/8,1/3"]
    threshold, flow, mask = contenders([], sweeps, ["1/4"])
    assert threshold.spec == "threshold:0.5, 0.9"
    assert [variant.setting for variant in threshold.variants] == ["0.5", "0.9"]
    assert threshold.variants[1].trial == Trial("threshold", {"budget": "full", "threshold": "0.9"})
    assert flow.variants[1].setting == "0.9"
    assert flow.variants[1].trial == Trial(
        "flow", {"budget": "full", "policy": "power:8", "top_k": "2", "tau": "0.9"}
    )
    assert [v.trial.options for v in mask.variants] == [{"steps": "1/8"}, {"steps": "1/3"}]


def test_a_budget_of_its_own_replaces_the_others() -> None:
    own, other = contenders(["mask+budget=1/3", "mask:margin"], [], ["1/4", "1/2"])
    assert [variant.trial.options for variant in own.variants] == [{"budget": "1/3"}]
    assert len(other.variants) == 2


def test_paths_keep_their_colons_and_pluses() -> None:
    [flow] = contenders(["flow:learned:a+b/c:d+tau=0.8"], [], ["1/4"])
    options = flow.variants[0].trial.options
    assert options == {"budget": "1/4", "policy": "learned:a+b/c:d", "tau": "0.8"}


@pytest.mark.parametrize(
    ("decoders", "sweeps", "message"),
    [
        ([], [], "no decoders were given"),
        (["maks"], [], "did you mean 'mask'"),
        (["mask", "mask"], [], "given twice"),
        (["threshold:"], [], "nothing follows the colon"),
        ([], ["threshold"], "end it with a list of values"),
        (["threshold:0.5,0.9"], [], r"a list of values is a sweep: --sweep threshold:0\.5,0\.9"),
        (["threshold:{0.5, 0.9}"], [], r"without braces: --sweep threshold:0\.5,0\.9$"),
        (
            ["flow:power:8+tau={0.7,0.9}+top_k=2"],
            [],
            r"--sweep flow:power:8\+top_k=2\+tau=0\.7,0\.9$",
        ),
        (
            ["flow:confidence,threshold:{0.5,0.9},mask"],
            [],
            r"a flag for each: -d flow:confidence --sweep threshold:0\.5,0\.9 -d mask$",
        ),
    ],
)
def test_bad_specs_and_the_former_writing_are_named(
    decoders: list[str], sweeps: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        contenders(decoders, sweeps, ["1/4"])


def test_budgets_are_passes_or_shares_of_the_length() -> None:
    assert distinct_budgets(["1", "1/4", "50%", "25%", "full", 1]) == ["1", "1/4", "50%", "full"]
    for budgets in (["3/2"], ["0"], ["quarter"], ["1/0"], []):
        with pytest.raises(InputError, match="budget"):
            distinct_budgets(budgets)


def test_the_comparison_as_a_report() -> None:
    points = [
        Point("minimath", "mask", "", 0.25, measured(40, 24, "1/4 (24 passes)", decoder="mask")),
        Point("minimath", "mask", "", 1.0, measured(90, 96, "full (96 passes)", decoder="mask")),
        Point("minimath", "flow:0.7,0.9", "0.7", 0.2, measured(50, 19.2, decoder="flow", tau=0.7)),
        Point("minicode", "mask", "", 0.25, measured(0, 24, decoder="mask")),
        Point("minicode", "flow:0.7,0.9", "0.9", 0.25, measured(10, 24, decoder="flow", tau=0.9)),
    ]
    areas = areas_of(points)
    assert areas["flow:0.7,0.9"]["minimath"] == pytest.approx(0.5 * log(5) / log(20))
    assert areas["mask"]["minicode"] == 0
    report = compared(points, "tiny", Bench(Plan((make_task("minimath"),), limit=3)))
    assert report.rows[0] == [
        *("minimath", "mask", "–", "1/4 (24 passes)", "40.0 [30.9, 49.8]"),
        *("24.0", "1.0", "–", "–", "0.250", ""),
    ]
    assert [row[-1] for row in report.rows] == ["", "yes", "yes", "", "yes"]
    assert report.rules == ["mask: no settings", "flow: tau=0.7 or 0.9"]
    assert report.notes[0].startswith("Problems: 3 of minimath, of the validation split.")
    assert not any("leads" in note or "above every" in note for note in report.notes)
    entry = report.data["points"][2]
    assert (entry["setting"], entry["unbeaten"]) == ("0.7", True)
    assert (entry["budget"], entry["rules"]["tau"]) == ("1/4 (16 passes)", 0.7)
    assert entry["summary"]["passes_mean"] == 19.2
    lines = area_grid(areas).splitlines()
    assert lines[0].split("|")[1:-1] == [
        *(" decoder      ", " minimath ", " minicode ", " mean area ")
    ]
    assert [line.split()[1] for line in lines[2:]] == ["flow:0.7,0.9", "mask"]
    assert lines[2].split()[3] == "0.269"


def test_rule_sets_that_differ_in_one_setting_share_a_line() -> None:
    flow = {"decoder": "flow", "policy": "confidence", "tau": 0.9, "commit": None, "top_k": 1}
    sets = [
        flow,
        flow | {"tau": 0.8},
        flow,
        flow | {"top_k": 2},  # another setting than the line's
        flow | {"policy": "power:8"},
        {"decoder": "mask", "confirm": True},
        {},
    ]
    assert rules_lines(sets) == [
        "flow (confidence): tau=0.9 or 0.8, commit=off, top_k=1",
        "flow (confidence): tau=0.9, commit=off, top_k=2",
        "flow (power:8): tau=0.9, commit=off, top_k=1",
        "mask: confirm=on",
    ]

"""Specs, areas and fronts with exact values."""

from math import log

import pytest
from made_up import found

from xpredflow import InputError
from xpredflow.experiments.bench import Trial
from xpredflow.experiments.compare import area_grid, areas, compared, goal
from xpredflow.experiments.parallelism import Point, area, staircase, unbeaten
from xpredflow.experiments.specs import budgets_of, contenders


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


def test_decoders_without_a_sweep_run_under_every_budget() -> None:
    [mask] = contenders("mask", ["1/4", "full"])
    assert [variant.label for variant in mask.variants] == ["budget 1/4", "budget full"]
    assert mask.variants[0].trial == Trial("mask", {"budget": "1/4"})
    assert mask.variants[1].trial == Trial("mask")


def test_a_sweep_runs_each_value_at_full_budget() -> None:
    text = "threshold:{0.5, 0.9},flow:power:8+tau={0.7,0.9}+top_k=2,mask+budget=1/3"
    sweep, flow, mask = contenders(text, ["1/4"])
    assert sweep.spec == "threshold:{0.5, 0.9}"
    assert [variant.trial for variant in sweep.variants] == [
        Trial("threshold", {"threshold": "0.5"}),
        Trial("threshold", {"threshold": "0.9"}),
    ]
    assert flow.variants[1].label == "0.9"
    assert flow.variants[1].trial == Trial(
        "flow", {"policy": "power:8", "tau": "0.9", "top_k": "2"}
    )
    assert [variant.trial.options for variant in mask.variants] == [{"budget": "1/3"}]


def test_paths_keep_their_colons_and_pluses() -> None:
    [flow] = contenders("flow:learned:a+b/c:d+tau=0.8", ["1/4"])
    options = flow.variants[0].trial.options
    assert options == {"budget": "1/4", "policy": "learned:a+b/c:d", "tau": "0.8"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" , ", "no decoders were given"),
        ("maks", "did you mean 'mask'"),
        ("mask,mask", "given twice"),
        ("threshold:{0.5", "at most one list of values"),
        ("threshold:{0.5}+temperature={0,1}", "at most one list of values"),
        ("threshold:{}", "the braces are empty"),
        ("threshold:", "nothing follows the colon"),
    ],
)
def test_bad_specs_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        contenders(text, ["1/4"])


def test_budgets_are_passes_or_shares_of_the_length() -> None:
    assert budgets_of("1, 1/4,50%,25%,full") == ["1", "25%", "50%", "full"]
    for text in ("3/2", "0", "quarter", "1/0", ","):
        with pytest.raises(InputError, match="budget"):
            budgets_of(text)


def test_the_comparison_as_a_report() -> None:
    points = [
        Point("minimath", "mask", "budget 1/4", 0.25, found(40, passes=24)),
        Point("minimath", "mask", "budget 1", 1.0, found(90, passes=96)),
        Point("minimath", "flow", "budget 1/4", 0.2, found(50, passes=19.2)),
        Point("minicode", "mask", "budget 1/4", 0.25, found(0, passes=24)),
        Point("minicode", "flow", "budget 1/4", 0.25, found(10, passes=24)),
    ]
    best = areas(points)
    assert best["flow"]["minimath"] == pytest.approx(0.5 * log(5) / log(20))
    assert best["mask"]["minicode"] == 0
    report = compared(points, "tiny", ["A note."])
    assert report.rows[0] == [
        *("minimath", "mask", "budget 1/4", "40.0 [30.9, 49.8]", "24.0", "0.250", "")
    ]
    assert [row[-1] for row in report.rows] == ["", "yes", "yes", "", "yes"]
    assert [entry["unbeaten"] for entry in report.data["points"]].count(True) == 3
    lines = area_grid(best).splitlines()
    assert lines[0] == "| decoder | minimath | minicode | mean area |"
    assert [line.split()[1] for line in lines[2:]] == ["flow", "mask"]
    assert lines[2].split()[3] == "0.269"


def test_the_goal_is_judged_at_every_point_of_the_others() -> None:
    learned = [
        Point("minimath", "flow:learned:a+tau={0.7,0.9}", "0.7", 0.06, found(80, passes=4)),
        Point("minimath", "flow:learned:a+tau={0.7,0.9}", "0.9", 0.12, found(90, passes=8)),
    ]
    beaten = [
        Point("minimath", "eb", "0.1", 0.12, found(90, passes=8)),  # equal is on the curve
        Point("minimath", "eb", "0.5", 0.08, found(80, passes=5)),
        Point("minimath", "mask", "budget 1", 1.0, found(99, passes=64)),  # beyond the range
        Point("minimath", "flow:power:8", "budget 1/4", 0.07, found(95, passes=4)),
    ]
    who = "On minimath, flow with a learned policy, all its settings together,"
    span = "every other decoder's curve from 0.05 to 0.25 of the full budget"
    assert goal(learned + beaten) == [f"{who} is on or above {span}."]
    # faster than the range: what it solves counts from 0.05 on, where the flow has nothing yet
    fast = Point("minimath", "credit", "0.7", 0.03, found(10, passes=2))
    better = Point("minimath", "eb", "0.2", 0.1, found(81, passes=6))
    assert goal([*learned, *beaten, fast, better]) == [
        f"{who} is not above {span} (credit, 0.7: 10.0% in 2.0 passes against 0.0%;"
        " eb, 0.2: 81.0% in 6.0 passes against 80.0%)."
    ]
    assert goal(beaten) == []
    assert goal(learned) == []

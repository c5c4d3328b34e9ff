"""The look of the pictures: what is in colour, what is named where, and that nothing gets lost."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from xpredflow.evaluation.statistics import Summary, wilson
from xpredflow.experiments.bench import Measured
from xpredflow.experiments.compare_report import areas_of
from xpredflow.experiments.parallelism import Point
from xpredflow.experiments.plots import coloured, draw_decoders, kind_of
from xpredflow.figures import (
    COLOURS,
    LEAST_GAP,
    folded,
    new_figure,
    percent_ticks,
    smooth,
    spread,
)
from xpredflow.training.common.plots import plot_alignment

pytest.importorskip("matplotlib")


def point(decoder: str, right: int, share: float, **rules: object) -> Point:
    low, high = wilson(right, 100)
    summary = Summary(
        task="minimath",
        decoder=decoder,
        policy=None,
        budget="full",
        n=100,
        accuracy=right / 100,
        low=low,
        high=high,
        passes_mean=64 * share,
        passes_median=64 * share,
        passes_max=64,
        tokens_per_forward=1.0,
        pass_at={1: right / 100},
    )
    named = {"decoder": decoder.split("+")[0], **rules}
    return Point("minimath", decoder, "", share, Measured(summary, "full", 64, named))


def many_points() -> list[Point]:
    """Flow twice, mask prediction at two budgets, and eight peers, the last the best."""
    return [
        point("flow", 90, 0.06, commit_threshold=0.85),
        point("flow+rules=paper", 90, 0.1),
        point("mask", 20, 0.1),
        point("mask", 88, 1.0),
        *(point(f"peer{i}", 60 + 3 * i, 0.1) for i in range(1, 9)),
    ]


def test_names_stand_apart_and_inside() -> None:
    moved = spread([0.9, 0.95, 0.96, 0.99, 1.2])
    assert moved[-1] == pytest.approx(1.0)
    assert all(b - a >= LEAST_GAP - 1e-9 for a, b in pairwise(moved))
    assert spread([0.1, 0.5]) == [0.1, 0.5]
    assert spread([]) == []
    one, three, two = spread([0.5, 0.5, 0.5], [1, 3, 2])
    assert three - one == pytest.approx(2 * LEAST_GAP)
    assert two - three == pytest.approx(2.5 * LEAST_GAP)


def test_long_names_are_folded_before_a_sign() -> None:
    assert folded("flow+rules=paper, area 0.9") == "flow+rules=paper, area 0.9"
    lines = folded("flow:learned:runs/left+rules=paper+tau=0.8 (on tiny)").split("\n")
    assert lines == ["flow:learned:runs/left", "+rules=paper+tau=0.8 (on tiny)"]


@pytest.mark.parametrize("limits", [(0.75, 0.95), (0.921, 0.93), (0.0, 1.02)])
def test_no_two_ticks_say_the_same(limits: tuple[float, float]) -> None:
    figure, [[axes]] = new_figure(1, 1)
    axes.set_ylim(*limits)
    percent_ticks(axes)
    figure.draw_without_rendering()
    told = [label.get_text() for label in axes.get_yticklabels()]
    assert len(set(told)) == len(told) > 2


def test_a_running_mean_keeps_a_line_and_ends_as_smoothly() -> None:
    line = [float(i) for i in range(100)]
    assert smooth(line)[5:-5] == pytest.approx(line[5:-5])
    assert smooth([3.0]) == [3.0]
    noisy = smooth([0.0, 1.0] * 50, window=10)
    assert all(0.4 < value < 0.6 for value in noisy)


def test_the_best_of_each_kind_is_in_colour_the_same_in_every_picture() -> None:
    points = many_points()
    colours = coloured(points, areas_of(points))
    assert len(colours) == 6
    kinds = {point.decoder: kind_of(point) for point in points}
    assert kinds["flow"] == "extended"
    assert kinds["flow+rules=paper"] == "flow"
    assert colours["flow"] == COLOURS[0]
    assert "mask" in colours
    assert [name for name in colours if kinds[name] == "peer"] == ["peer8", "peer7", "peer6"]
    few = [point for point in points if point.decoder in ("mask", "peer1", "peer2")]
    assert coloured(few, areas_of(few))["mask"] == colours["mask"]
    assert len(coloured(few, areas_of(few))) == 3


def texts(picture: Path) -> str:
    """What is written in an SVG: matplotlib leaves each text as a comment beside its shapes."""
    return "\n".join(
        line.strip().removeprefix("<!-- ").removesuffix(" -->")
        for line in picture.read_text().splitlines()
        if line.strip().startswith("<!--")
    )


def test_the_picture_names_models_counts_lines_and_what_lies_below(tmp_path: Path) -> None:
    points = many_points()
    assert draw_decoders(points, areas_of(points), tmp_path / "a.svg", "tiny")
    said = texts(tmp_path / "a.svg")
    assert "tiny: accuracy over forward passes" in said
    assert "minimath, n = 100; ▾ 1 below 45 %" in said
    assert "flow, area" in said
    assert "1/16" in said
    assert "In grey: " in said
    assert "peer1" in said


def test_alignment_shows_single_steps_behind_their_means(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    lines: list[dict[str, Any]] = [
        {"step": i, "mse_masked": 1 / (1 + i), "mse_unmasked": 0.1, "ce_masked": 1.0}
        | {"reference_ce_masked": 1.1}
        for i in range(40)
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert plot_alignment(log, tmp_path / "a.svg")
    assert "Alignment, 40 steps" in texts(tmp_path / "a.svg")
    faint = tmp_path.joinpath("a.svg").read_text().count("stroke-opacity: 0.25")
    assert faint == 4

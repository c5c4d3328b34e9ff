"""Decoders against each other: accuracy over forward passes on one model."""

from dataclasses import asdict
from statistics import fmean
from typing import Any

from xpredflow.experiments.bench import Bench
from xpredflow.experiments.decoding import INTERVALS, problems
from xpredflow.experiments.parallelism import LEAST, MOST, Point, area, reached, unbeaten
from xpredflow.experiments.pareto import draw
from xpredflow.experiments.report import Report, grid
from xpredflow.experiments.specs import Contender

AREA = (
    f"The area is the accuracy–parallelism area of docs/compare.md, from {LEAST:g} of the full"
    " budget to all of it, between 0 and 1."
)
UNBEATEN = "Unbeaten: no other point is as good with fewer passes, or better with as many."
SPAN = f"from {LEAST:g} to {MOST:g} of the full budget"


def measure(bench: Bench, source: str, contenders: list[Contender]) -> list[Point]:
    """Every variant of every decoder on every task."""
    points = []
    for task in bench.plan.tasks:
        full = bench.plan.positions(task)
        for contender in contenders:
            for variant in contender.variants:
                found = bench.summary(source, task, variant.trial)
                share = found.passes_mean / full
                points.append(Point(task.name, contender.spec, variant.label, share, found))
    return points


def areas(points: list[Point]) -> dict[str, dict[str, float]]:
    """By decoder and task."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for point in points:
        found.setdefault(point.decoder, {}).setdefault(point.task, []).append(point.place)
    return {name: {task: area(own) for task, own in by.items()} for name, by in found.items()}


def compared(points: list[Point], source: str, notes: list[str]) -> Report:
    """The comparison as a report: a line per point, the areas, a panel per task."""
    best = areas(points)
    return Report(
        title=f"Decoders on {source}: accuracy over forward passes",
        header=["task", "decoder", "setting", "accuracy, %", "passes", "of full", "unbeaten"],
        rows=_rows(points),
        more=[area_grid(best)],
        data={"points": _entries(points), "areas": best, "least": LEAST},
        notes=[*notes, INTERVALS, AREA, UNBEATEN, *goal(points)],
        draw=lambda picture: draw(points, best, picture),
    )


def goal(points: list[Point]) -> list[str]:
    """Per task, whether flow with a learned policy leads the other decoders; what leads it."""
    sentences = []
    for task in dict.fromkeys(point.task for point in points):
        own = [p for p in points if p.task == task]
        flow = [p.place for p in own if p.decoder.startswith("flow:learned:")]
        others = [p for p in own if not p.decoder.startswith("flow") and p.share <= MOST]
        if not flow or not others:
            continue
        above = [p for p in others if p.summary.accuracy > reached(flow, max(p.share, LEAST))]
        who = f"On {task}, flow with a learned policy, all its settings together,"
        if not above:
            sentences.append(f"{who} is on or above every other decoder's curve {SPAN}.")
            continue
        found = "; ".join(
            f"{p.decoder}, {p.setting}: {p.summary.accuracy:.1%} in {p.summary.passes_mean:.1f}"
            f" passes against {reached(flow, max(p.share, LEAST)):.1%}"
            for p in above
        )
        sentences.append(f"{who} is not above every other decoder's curve {SPAN} ({found}).")
    return sentences


def area_grid(best: dict[str, dict[str, float]]) -> str:
    """The areas as a table, the largest mean first."""
    tasks = list(dict.fromkeys(task for by_task in best.values() for task in by_task))
    order = sorted(best, key=lambda name: -fmean(best[name].values()))
    rows = [
        [name, *(f"{best[name][task]:.3f}" for task in tasks), f"{fmean(best[name].values()):.3f}"]
        for name in order
    ]
    return grid(["decoder", *tasks, "mean area"], rows)


def comparison_notes(bench: Bench) -> list[str]:
    """Which problems, and what the full budget is."""
    plan = bench.plan
    full = ", ".join(f"{plan.positions(task)} on {task.name}" for task in plan.tasks)
    return [problems(bench), f"The full budget is a pass per position: {full}."]


def _flags(points: list[Point]) -> list[bool]:
    """Unbeaten among all decoders on the same task."""
    flags: dict[int, bool] = {}
    for task in {point.task for point in points}:
        own = [i for i, point in enumerate(points) if point.task == task]
        flags |= dict(zip(own, unbeaten([points[i].place for i in own]), strict=True))
    return [flags[i] for i in range(len(points))]


def _rows(points: list[Point]) -> list[list[str]]:
    rows = []
    for point, is_unbeaten in zip(points, _flags(points), strict=True):
        found = point.summary
        interval = f"[{100 * found.low:.1f}, {100 * found.high:.1f}]"
        rows.append(
            [
                point.task,
                point.decoder,
                point.setting,
                f"{100 * found.accuracy:.1f} {interval}",
                f"{found.passes_mean:.1f}",
                f"{point.share:.3f}",
                "yes" if is_unbeaten else "",
            ]
        )
    return rows


def _entries(points: list[Point]) -> list[dict[str, Any]]:
    flags = _flags(points)
    return [{**asdict(p), "unbeaten": flag} for p, flag in zip(points, flags, strict=True)]

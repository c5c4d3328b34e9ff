"""A comparison as it is written: a line per point, the areas, a panel per task."""

from dataclasses import asdict
from statistics import fmean
from typing import Any

from xpredflow.evaluation import Summary
from xpredflow.experiments.bench import Bench
from xpredflow.experiments.decoding_table import INTERVALS, problems
from xpredflow.experiments.parallelism import LEAST, Point, area, unbeaten
from xpredflow.experiments.plots import draw_decoders
from xpredflow.experiments.report import Report, grid
from xpredflow.experiments.rules import rules_lines

AREA = (
    f"The area is the accuracy–parallelism area of docs/compare.md, from {LEAST:g} of the full"
    " budget to all of it, between 0 and 1."
)
COUNTED = (
    "Tokens are those of the text that is shown, positions read those that an answer's passes"
    " predicted; times are of batches on the machine that this was made on."
)
UNBEATEN = "Unbeaten: no other point is as good with fewer passes, or better with as many."
COSTS = ("passes used", "tokens per pass", "positions read", "ms per answer")
HEADER = ["task", "decoder", "setting", "budget", "accuracy, %", *COSTS, "of full", "unbeaten"]


def costs(row: Summary) -> list[str]:
    """What an answer took on average, in the order of COSTS; tokens are those that are shown."""
    read = f"{row.read_mean:.0f}" if row.read_mean else "–"
    time = f"{1000 * row.seconds_mean:.0f}" if row.seconds_mean else "–"
    return [f"{row.passes_mean:.1f}", f"{row.tokens_per_forward:.1f}", read, time]


def areas_of(points: list[Point]) -> dict[str, dict[str, float]]:
    """By decoder and task."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for point in points:
        found.setdefault(point.decoder, {}).setdefault(point.task, []).append(point.place)
    return {name: {task: area(own) for task, own in by.items()} for name, by in found.items()}


def compared(points: list[Point], source: str, bench: Bench) -> Report:
    """The points of a comparison as a report."""
    areas = areas_of(points)
    return Report(
        title=f"Decoders on {source}: accuracy over forward passes",
        header=HEADER,
        rows=_rows(points),
        more=[area_grid(areas)],
        data={"points": _entries(points), "areas": areas, "least": LEAST},
        notes=[problems(bench), INTERVALS, COUNTED, AREA, UNBEATEN],
        rules=rules_lines([point.found.rules for point in points]),
        draw=lambda picture: draw_decoders(points, areas, picture, source),
    )


def area_grid(areas: dict[str, dict[str, float]]) -> str:
    """The areas as a table, the largest mean first."""
    tasks = list(dict.fromkeys(task for by_task in areas.values() for task in by_task))
    means = {name: fmean(by_task.values()) for name, by_task in areas.items()}
    rows = [
        [name, *(f"{areas[name][task]:.3f}" for task in tasks), f"{means[name]:.3f}"]
        for name in sorted(areas, key=lambda name: -means[name])
    ]
    return grid(["decoder", *tasks, "mean area"], rows)


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
                point.setting or "–",
                point.found.budget,
                f"{100 * found.accuracy:.1f} {interval}",
                *costs(found),
                f"{point.share:.3f}",
                "yes" if is_unbeaten else "",
            ]
        )
    return rows


def _entries(points: list[Point]) -> list[dict[str, Any]]:
    return [
        {
            "task": point.task,
            "decoder": point.decoder,
            "setting": point.setting,
            "budget": point.found.budget,
            "share": point.share,
            "unbeaten": is_unbeaten,
            "summary": asdict(point.summary),
            "rules": point.found.rules,
        }
        for point, is_unbeaten in zip(points, _flags(points), strict=True)
    ]

"""Pictures: decoders by accuracy over forward passes, and the probe of anchors over α."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from xpredflow.experiments.parallelism import LEAST, Point, staircase
from xpredflow.figures import (
    COLOURS,
    GREY,
    can_draw,
    name_lines,
    new_figure,
    percent_ticks,
    share_ticks,
)
from xpredflow.files import save_figure
from xpredflow.flow_extensions import EXTENSIONS, ExtendedRules

# Which decoders are in colour, the best of each kind first; a kind has the same in every picture.
ROLES = {"extended": COLOURS[:1], "mask": COLOURS[1:2], "peer": COLOURS[2:5], "flow": COLOURS[5:6]}
Areas = dict[str, dict[str, float]]


def draw_decoders(points: list[Point], areas: Areas, picture: Path, model: str = "") -> bool:
    """A panel per task, a staircase and points with their intervals per decoder.

    False where matplotlib is missing.
    """
    if not can_draw():
        return False
    tasks = list(dict.fromkeys(point.task for point in points))
    colours = coloured(points, areas)
    rest = [name for name in areas if name not in colours]
    listed = textwrap.wrap(f"In grey: {', '.join(rest)}", 75 * len(tasks)) if rest else []
    figure, [panels] = new_figure(1, len(tasks), width=7.5, height=5 + 0.2 * len(listed))
    for axes, task in zip(panels, tasks, strict=True):
        _panel(axes, [point for point in points if point.task == task], areas, colours)
    panels[0].set_ylabel("accuracy, with 95 % intervals")
    figure.suptitle(f"{model}: accuracy over forward passes".removeprefix(": "))
    if listed:
        figure.supxlabel("\n".join(listed), fontsize="small", color=GREY)
    save_figure(figure, picture)
    return True


def coloured(points: list[Point], areas: Areas) -> dict[str, str]:
    """Colours of the best flow of each kind, the best peers and mask prediction; all, if few."""
    mean = {name: fmean(by_task.values()) for name, by_task in areas.items()}
    ranked = sorted(areas, key=lambda name: -mean[name])
    kinds = {point.decoder: kind_of(point) for point in points}
    chosen: dict[str, str] = {}
    for kind, own in ROLES.items():
        best = [name for name in ranked if kinds[name] == kind]
        chosen |= dict(zip(best, own, strict=False))
    if len(areas) <= len(COLOURS):
        left = [colour for colour in COLOURS if colour not in chosen.values()]
        others = [name for name in ranked if name not in chosen]
        chosen |= dict(zip(others, left, strict=False))
    return chosen


def kind_of(point: Point) -> str:
    """flow by the paper's rules, flow extended, mask prediction, or a peer."""
    rules = point.found.rules
    if rules.get("decoder") != "flow":
        return "mask" if rules.get("decoder") == "mask" else "peer"
    plain = ExtendedRules()
    ours = any(rules.get(name, getattr(plain, name)) != getattr(plain, name) for name in EXTENSIONS)
    return "extended" if ours else "flow"


def _panel(axes: Any, points: list[Point], areas: Areas, colours: dict[str, str]) -> None:
    task, counts = points[0].task, sorted({point.summary.n for point in points})
    best = max(point.summary.accuracy for point in points)
    top, half = min(max(point.summary.high for point in points), 1.0), best / 2
    # no lower than half of the best: from 0 on the best would be one line
    bottom = max(half, min(point.summary.low for point in points))
    bottom = half if any(point.summary.accuracy < bottom for point in points) else bottom
    least = min(LEAST, *(point.share for point in points))
    share_ticks(axes, least)
    axes.set_xlim(least * 0.9, 1.08)
    axes.set_ylim(bottom - 0.03 * (top - bottom), top + 0.02)
    percent_ticks(axes)
    names = []
    for name in sorted(areas, key=lambda name: name in colours):  # the grey ones behind
        own = [point for point in points if point.decoder == name]
        if not own:
            continue
        _curve(axes, own, colours.get(name, GREY), bottom, plain=name not in colours)
        if name in colours:
            height = max(staircase(point.place for point in own)[-1][1], bottom)
            names.append((height, f"{name}, area {areas[name][task]:.3f}", colours[name]))
    name_lines(axes, names)
    low = sum(point.summary.accuracy < bottom for point in points)
    told = f"; ▾ {low} below {100 * bottom:.0f} %" if low else ""
    axes.set(
        title=f"{task}, n = {' or '.join(map(str, counts))}{told}",
        xlabel="forward passes used, share of one per position",
    )


def _curve(axes: Any, points: list[Point], colour: str, bottom: float, *, plain: bool) -> None:
    shown = [point for point in points if point.summary.accuracy >= bottom]
    lost = [point for point in points if point.summary.accuracy < bottom]
    look = {"color": colour, "alpha": 0.6 if plain else 1.0, "zorder": 2 if plain else 3}
    if shown:
        shares, accuracies = zip(*(point.place for point in shown), strict=True)
        below = [point.summary.accuracy - point.summary.low for point in shown]
        above = [point.summary.high - point.summary.accuracy for point in shown]
        bars = None if plain else [below, above]
        dots = {"fmt": "o", "markersize": 3 if plain else 5, "elinewidth": 0.8, **look}
        axes.errorbar(shares, accuracies, yerr=bars, **dots)
        steps = staircase(point.place for point in shown)
        steps.append((max(1.0, steps[-1][0]), steps[-1][1]))
        width = 0.8 if plain else 1.8
        axes.step(*zip(*steps, strict=True), where="post", linewidth=width, **look)
    for point in lost:  # at the edge, so that nobody misses them
        edge = {"transform": axes.get_xaxis_transform(), "clip_on": False, "markersize": 6}
        axes.plot(point.share, 0.0, "v", **edge, **look)


def draw_recovery(shown: dict[str, Any], alphas: Sequence[float], picture: Path) -> bool:
    """Accuracy above cross-entropy, a column per Recovery, by where it was measured.

    False where matplotlib is missing.
    """
    if not can_draw():
        return False
    figure, panels = new_figure(2, len(shown), width=4.6, height=3, sharex=True)
    for column, (where, recovery) in enumerate(shown.items()):
        for row, measure in enumerate(("accuracy", "cross_entropy")):
            axes, names = panels[row][column], []
            curves = getattr(recovery, measure).items()
            for (name, values), colour in zip(curves, COLOURS, strict=False):
                axes.plot(alphas, values, "o-", markersize=4, color=colour)
                names.append((values[-1], name, colour))
            axes.set(ylabel=measure.replace("_", "-"))
            axes.set_ylim((0, 1.02) if row == 0 else (0, None))
            name_lines(axes, names)
        panels[0][column].set(title=f"{where}, n = {recovery.positions}")
        percent_ticks(panels[0][column])
        panels[1][column].set(xlabel="displacement α")
    figure.suptitle("Tokens recovered after a displacement by α towards an endpoint; n positions")
    save_figure(figure, picture)
    return True

"""Accuracy over forward passes as a picture: a panel per task, a staircase per decoder."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from xpredflow.experiments.parallelism import LEAST, Point, staircase
from xpredflow.files import save_figure


def draw(points: list[Point], areas: dict[str, dict[str, float]], picture: Path) -> bool:
    """Points with their intervals; False where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        return False
    from matplotlib.figure import Figure  # not pyplot: no display and no global state

    tasks = list(dict.fromkeys(point.task for point in points))
    figure = Figure(figsize=(6 * len(tasks), 4.5), layout="constrained")
    panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        for number, (name, by_task) in enumerate(areas.items()):
            own = [p for p in points if p.task == task and p.decoder == name]
            _curve(axes, own, f"{name} ({by_task[task]:.3f})", f"C{number}")
        axes.axvline(LEAST, color="grey", linewidth=0.5, linestyle="--")
        axes.set(title=task, xlabel="forward passes, share of the full budget", xscale="log")
        axes.legend(title="decoder (area)", fontsize="small")
    panels[0].set(ylabel="accuracy", ylim=(-0.02, 1.02))
    save_figure(figure, picture)
    return True


def _curve(axes: Any, points: list[Point], label: str, colour: str) -> None:
    shares, accuracies = zip(*(point.place for point in points), strict=True)
    below = [p.summary.accuracy - p.summary.low for p in points]
    above = [p.summary.high - p.summary.accuracy for p in points]
    style = {"fmt": "o", "color": colour, "markersize": 4, "capsize": 2}
    axes.errorbar(shares, accuracies, yerr=[below, above], label=label, **style)
    steps = staircase(point.place for point in points)
    steps.append((max(1.0, steps[-1][0]), steps[-1][1]))
    axes.step(*zip(*steps, strict=True), where="post", color=colour, linewidth=1)

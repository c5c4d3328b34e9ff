"""Pictures: decoders by accuracy over forward passes, and the probe of anchors over α."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from xpredflow.experiments.parallelism import LEAST, Point, staircase
from xpredflow.files import save_figure

MARKERS = "osD^vP*X"
COLOURS = 20


def draw_decoders(points: list[Point], areas: dict[str, dict[str, float]], picture: Path) -> bool:
    """A panel per task, a staircase and points with their intervals per decoder.

    False where matplotlib is missing.
    """
    if find_spec("matplotlib") is None:
        return False
    from matplotlib import colormaps
    from matplotlib.figure import Figure  # not pyplot: no display and no global state

    tasks = list(dict.fromkeys(point.task for point in points))
    lines = -(-len(areas) // len(tasks))  # of the legend below, which has a column per panel
    figure = Figure(figsize=(7.5 * len(tasks), 5 + 0.2 * lines), layout="constrained")
    panels = figure.subplots(1, len(tasks), squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        for number, name in enumerate(areas):
            own = [p for p in points if p.task == task and p.decoder == name]
            style = {
                "color": colormaps["tab20"](number % COLOURS),
                "marker": MARKERS[number % len(MARKERS)],
                "linewidth": 1.2,
            }
            _curve(axes, own, style, _label(name, areas[name]))
        axes.axvline(LEAST, color="grey", linewidth=0.5, linestyle="--")
        axes.set(title=task, xlabel="forward passes, share of the full budget", xscale="log")
        best = max(p.summary.accuracy for p in points if p.task == task)
        axes.set_ylim(best / 2 - 0.02, best + 0.02)  # from 0 on the best would be one line
    panels[0].set_ylabel("accuracy, from half of the best on")
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        title=f"decoder (area on {', '.join(tasks)})",
        loc="outside lower center",
        ncols=len(tasks),
        fontsize="small",
    )
    save_figure(figure, picture)
    return True


def _label(name: str, areas: dict[str, float]) -> str:
    return f"{name} ({', '.join(f'{a:.3f}' for a in areas.values())})"


def _curve(axes: Any, points: list[Point], style: dict[str, Any], label: str) -> None:
    shares, accuracies = zip(*(point.place for point in points), strict=True)
    below = [p.summary.accuracy - p.summary.low for p in points]
    above = [p.summary.high - p.summary.accuracy for p in points]
    dots = {**style, "linestyle": "none", "markersize": 5, "elinewidth": 0.6}
    axes.errorbar(shares, accuracies, yerr=[below, above], label=label, **dots)
    steps = staircase(point.place for point in points)
    steps.append((max(1.0, steps[-1][0]), steps[-1][1]))
    line = {**style, "marker": ""}
    axes.step(*zip(*steps, strict=True), where="post", **line)


def draw_recovery(shown: dict[str, Any], alphas: Sequence[float], picture: Path) -> bool:
    """Accuracy above cross-entropy, a column per Recovery, by where it was measured.

    False where matplotlib is missing.
    """
    if find_spec("matplotlib") is None:
        return False
    from matplotlib.figure import Figure  # not pyplot: no display and no global state

    figure = Figure(figsize=(4 * len(shown), 6), layout="constrained")
    panels = figure.subplots(2, len(shown), sharex=True, squeeze=False)
    for column, (where, recovery) in enumerate(shown.items()):
        for row, measure in enumerate(("accuracy", "cross_entropy")):
            axes = panels[row][column]
            for name, values in getattr(recovery, measure).items():
                axes.plot(alphas, values, "o-", label=name)
            axes.set(ylabel=measure.replace("_", "-"))
        panels[0][column].set(title=where, ylim=(0, 1.02))
        panels[1][column].set(xlabel="displacement α", ylim=(0, None))
    panels[0][0].legend(title="endpoint")
    save_figure(figure, picture)
    return True

"""The look of every picture: few colours, quiet axes, names beside the lines, ticks to read.

figure, [[axes]] = new_figure(1, 1)
axes.plot(steps, losses, color=COLOURS[0])
name_lines(axes, [(losses[-1], "loss", COLOURS[0])])
save_figure(figure, Path("loss.png"))
"""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

# Told apart by colour-blind readers too (Okabe and Ito); the first ones first, GREY for the rest.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
GREY, FAINT = "#9aa0a6", "#e3e6ea"
LEAST_GAP = 0.055  # between two names, as a share of the axes' height
SHARES = {1 / 64: "1/64", 1 / 32: "1/32", 1 / 16: "1/16", 1 / 8: "1/8", 1 / 4: "1/4"}
SHARES |= {1 / 2: "1/2", 1.0: "full"}


def can_draw() -> bool:
    """Whether matplotlib is there (the `plot` extra); every picture asks here."""
    return find_spec("matplotlib") is not None


def new_figure(
    rows: int, columns: int, *, width: float = 5.5, height: float = 3.6, **how: Any
) -> tuple[Any, Any]:
    """A figure and its panels as rows; sizes are of a panel, in inches."""
    from matplotlib.figure import Figure  # not pyplot: no display and no global state

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, **how)
    for axes in panels.flat:
        quiet(axes)
    return figure, panels


def quiet(axes: Any) -> None:
    """Only the edges that carry numbers, and a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)


def name_lines(axes: Any, names: Sequence[tuple[float, str, str]]) -> None:
    """Names at the right edge, each at the height (in data) where its line ends, moved apart.

    Long ones take several lines; a thin stroke leads to a name that had to move.
    """
    down = axes.transData.transform
    up = axes.transAxes.inverted().transform
    right = axes.get_xlim()[1]
    wanted = [(float(up(down((right, y)))[1]), folded(name), colour) for y, name, colour in names]
    wanted.sort(key=lambda one: one[0])
    heights = spread([one[0] for one in wanted], [one[1].count("\n") + 1 for one in wanted])
    for height, (end, name, colour) in zip(heights, wanted, strict=True):
        if abs(height - end) > LEAST_GAP / 4:
            stroke = {"color": colour, "linewidth": 0.6, "clip_on": False}
            axes.plot([1.005, 1.03], [end, height], transform=axes.transAxes, **stroke)
        look = {"color": colour, "fontsize": "small", "va": "center", "linespacing": 1.0}
        axes.text(1.035, height, name, transform=axes.transAxes, **look)


def folded(name: str, width: int = 30) -> str:
    """A name in lines that are no wider where it can be helped, broken before a sign."""
    lines = [""]
    for part in re.split(r"(?=[+(])|(?<=, )", name):
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def spread(
    heights: Sequence[float], lines: Sequence[int] = (), gap: float = LEAST_GAP
) -> list[float]:
    """Rising heights in [0, 1], moved as little as needed to stand a gap apart per line."""
    lines = lines or [1] * len(heights)
    gaps = [gap * (a + b) / 2 for a, b in pairwise(lines)]
    moved = [min(max(height, 0.0), 1.0) for height in heights]
    for i, own in enumerate(gaps):
        moved[i + 1] = max(moved[i + 1], moved[i] + own)
    over = moved[-1] - 1.0 if moved else 0.0
    if over > 0:
        moved[-1] -= over
        for i in range(len(moved) - 2, -1, -1):
            moved[i] = min(moved[i], moved[i + 1] - gaps[i])
    return moved


def share_ticks(axes: Any, least: float) -> None:
    """A logarithmic axis of shares of a budget, with ticks as people write them."""
    axes.set_xscale("log")
    shown = {share: text for share, text in SHARES.items() if share >= least * 0.99}
    axes.set_xticks(list(shown), labels=list(shown.values()))
    axes.minorticks_off()


def percent_ticks(axes: Any) -> None:
    """Accuracies in percent, at round ones; no two ticks say the same."""
    axes.locator_params(axis="y", steps=[1, 2, 5, 10])
    axes.yaxis.set_major_formatter(lambda value, _: f"{round(100 * value, 3):g} %")


def smooth(values: Sequence[float], window: int | None = None) -> list[float]:
    """A running mean, over a tenth of the values unless told; at the ends over half of that."""
    half = (window or max(len(values) // 10, 1)) // 2
    means = []
    for i in range(len(values)):
        part = values[max(i - half, 0) : i + half + 1]
        means.append(sum(part) / len(part))
    return means


def plot_smoothed(axes: Any, x: Sequence[float], values: Sequence[float], colour: str) -> float:
    """The running mean in front of the values themselves; where it ends."""
    axes.plot(x, values, color=colour, alpha=0.25, linewidth=0.8)
    means = smooth(values)
    axes.plot(x, means, color=colour, linewidth=1.8)
    return means[-1]

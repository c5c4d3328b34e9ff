"""The picture of a fair comparison: what each decoder's chosen settings reached, with intervals."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xpredflow.experiments.bench import Measured
from xpredflow.experiments.choice import Chosen
from xpredflow.figures import COLOURS, GREY, can_draw, name_lines, new_figure, percent_ticks
from xpredflow.files import save_figure

Shown = Sequence[tuple[Chosen, Measured]]


def draw_chosen(shown: Shown, picture: Path, title: str) -> bool:
    """A panel per task: accuracy over mean passes, a line through each decoder's settings.

    False where matplotlib is missing.
    """
    if not can_draw():
        return False
    tasks = list(dict.fromkeys(one.task for one, _ in shown))
    decoders = list(dict.fromkeys(one.decoder for one, _ in shown))
    colours = dict(zip(decoders, (*COLOURS, *[GREY] * len(decoders)), strict=False))
    figure, [panels] = new_figure(1, len(tasks), width=6.2, height=4)
    for axes, task in zip(panels, tasks, strict=True):
        _panel(axes, [pair for pair in shown if pair[0].task == task], colours)
    panels[0].set_ylabel("accuracy, with 95 % intervals")
    figure.suptitle(title)
    save_figure(figure, picture)
    return True


def _panel(axes: Any, shown: Shown, colours: dict[str, str]) -> None:
    names, ends = [], []
    usual = max(weights := [one.weights for one, _ in shown], key=weights.count)
    for decoder, colour in colours.items():
        # one setting may be the best at several targets, and is one dot
        own = {one.key: (one, found) for one, found in shown if one.decoder == decoder}
        rows = sorted(own.values(), key=lambda pair: pair[1].summary.passes_mean)
        if not rows:
            continue
        summaries = [found.summary for _, found in rows]
        passes = [row.passes_mean for row in summaries]
        heights = [row.accuracy for row in summaries]
        below = [row.accuracy - row.low for row in summaries]
        above = [row.high - row.accuracy for row in summaries]
        look = {"fmt": "o-", "markersize": 5, "elinewidth": 0.9, "capsize": 2, "color": colour}
        axes.errorbar(passes, heights, yerr=[below, above], **look)
        ends.append((passes[-1], heights[-1], colour))
        names.append((heights[-1], _named(decoder, [one for one, _ in rows], usual), colour))
    percent_ticks(axes)
    axes.locator_params(axis="x", steps=[1, 2, 5, 10])
    axes.set_xlim(*axes.get_xlim())
    for at, height, colour in ends:  # from the last dot to its name
        look = {"color": colour, "linewidth": 0.8, "linestyle": ":", "zorder": 1}
        axes.plot([at, axes.get_xlim()[1]], [height, height], **look)
    name_lines(axes, names)
    counts = sorted({found.summary.n for _, found in shown})
    axes.set(
        title=f"{shown[0][0].task}, n = {' or '.join(map(str, counts))}",
        xlabel="forward passes used, mean",
    )


def _named(decoder: str, chosen: Sequence[Chosen], usual: str) -> str:
    """A decoder with the settings that were chosen of its sweep; the weights where they differ."""
    settings = [one.candidate.variant.setting for one in chosen if one.candidate is not None]
    listed = ",".join(dict.fromkeys(filter(None, settings)))
    swept = re.sub(r"(?<=[:=])[^:=+]*,[^:=+]*$", listed, decoder) if listed else decoder
    others = [weights for one in chosen if (weights := one.weights) != usual]
    return f"{swept} (on {', '.join(dict.fromkeys(others))})" if others else swept

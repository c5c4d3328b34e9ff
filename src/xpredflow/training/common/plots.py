"""Pictures of a run's log, where matplotlib is installed (the `plot` extra)."""

import tomllib
from pathlib import Path
from typing import Any

from xpredflow.figures import (
    COLOURS,
    can_draw,
    name_lines,
    new_figure,
    percent_ticks,
    plot_smoothed,
)
from xpredflow.files import save_figure
from xpredflow.training.common.runs import read_log

__all__ = ["NO_PICTURE", "RUNNING", "can_draw", "plot_alignment", "plot_losses", "plot_names"]

RUNNING = "running means, single steps behind"
NO_PICTURE = "note: no picture without matplotlib: pip install 'xpredflow[plot]'"


def plot_losses(log: Path, picture: Path) -> bool:
    """Loss and accuracy over steps; False where matplotlib is missing or there is nothing yet."""
    lines = [line for line in read_log(log) if "loss" in line]
    if not can_draw() or not lines:
        return False
    figure, [[left, right]] = new_figure(1, 2)
    left.set_yscale("log")
    plot_names(left, lines, {"loss": "loss"})
    left.set(xlabel="step", ylabel="loss per response position (Eq. 1)")
    names = plot_names(right, lines, {"accuracy": "masked tokens right"}, named=False)
    probes = [line for line in lines if "solved" in line]
    tasks = probes[-1]["solved"] if probes else ()
    for task, colour in zip(tasks, COLOURS[1:], strict=False):
        known = [(line["step"], line["solved"].get(task)) for line in probes]
        right.plot(*zip(*known, strict=True), "o--", markersize=4, color=colour)
        names.append((known[-1][1] or 0.0, f"{task} solved", colour))
    right.set(xlabel="step", ylim=(0, 1.02))
    percent_ticks(right)
    name_lines(right, names)
    figure.suptitle(f"Training, {len(lines)} steps logged; {RUNNING}")
    save_figure(figure, picture)
    return True


def plot_alignment(log: Path, picture: Path) -> bool:
    """MSE at masked and unmasked positions beside CE and the reference's, as in the paper."""
    lines = [line for line in read_log(log) if "mse_masked" in line]
    if not can_draw() or not lines:
        return False
    figure, [[left, right]] = new_figure(1, 2)
    left.set_yscale("log")
    errors = {"mse_masked": "masked", "mse_unmasked": "unmasked", "mse_on_policy": "flow states"}
    plot_names(left, lines, errors)
    left.set(xlabel="step", ylabel="MSE of softmax(Z)·W_e")
    right.set(xlabel="step", ylabel="CE at masked positions")
    entropies = {"ce_masked": "aligned", "reference_ce_masked": "reference"}
    names = plot_names(right, lines, entropies, named=False)
    right.set_ylim(0, None)
    name_lines(right, names)
    figure.suptitle(f"Alignment{_of_model(log)}, {len(lines)} steps; {RUNNING}")
    save_figure(figure, picture)
    return True


def _of_model(log: Path) -> str:
    """Which model the run beside the log began with, where its file says so."""
    file = log.with_name("run.toml")
    known = tomllib.loads(file.read_text()).get("inputs", {}) if file.is_file() else {}
    return f" of {known['model']}" if known.get("model") else ""


def plot_names(
    axes: Any, lines: list[dict[str, Any]], names: dict[str, str], *, named: bool = True
) -> list[tuple[float, str, str]]:
    """Smoothed curves over steps with their names beside them, or to be named later."""
    ends = []
    for (name, label), colour in zip(names.items(), COLOURS, strict=False):
        known = [(line["step"], line[name]) for line in lines if line.get(name) is not None]
        if known:
            steps, values = zip(*known, strict=True)
            ends.append((plot_smoothed(axes, steps, values, colour), label, colour))
    if named:
        name_lines(axes, ends)
    return ends

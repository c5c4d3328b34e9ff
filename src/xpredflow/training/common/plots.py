"""Pictures of a run's log, where matplotlib is installed (the `plot` extra)."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from xpredflow.files import save_figure
from xpredflow.training.common.runs import read_log

NO_PICTURE = "note: no picture without matplotlib: pip install 'xpredflow[plot]'"


def can_draw() -> bool:
    """Whether matplotlib is there; every picture of a training asks here."""
    return find_spec("matplotlib") is not None


def plot_losses(log: Path, picture: Path) -> bool:
    """Loss and accuracy over steps; False where matplotlib is missing or there is nothing yet."""
    lines = [line for line in read_log(log) if "loss" in line]
    if not can_draw() or not lines:
        return False
    from matplotlib.figure import Figure  # not pyplot: no display and no global state

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    steps = [line["step"] for line in lines]
    axes.plot(steps, [line["loss"] for line in lines], color="tab:blue")
    axes.set(xlabel="step", ylabel="loss per response position (Eq. 1)", yscale="log")
    twin = axes.twinx()
    twin.plot(steps, [line["accuracy"] for line in lines], color="tab:orange")
    probes = [line for line in lines if "solved" in line]
    for task in probes[-1]["solved"] if probes else ():
        solved = [line["solved"].get(task) for line in probes]
        twin.plot([line["step"] for line in probes], solved, "o--", label=f"{task} solved")
    twin.set(ylabel="masked tokens guessed right; problems solved", ylim=(0, 1))
    if probes:
        twin.legend(loc="center right")
    save_figure(figure, picture)
    return True


def plot_alignment(log: Path, picture: Path) -> bool:
    """MSE at masked and unmasked positions beside CE and the reference's, as in the paper."""
    lines = [line for line in read_log(log) if "mse_masked" in line]
    if not can_draw() or not lines:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    errors = {"mse_masked": "masked", "mse_unmasked": "unmasked", "mse_on_policy": "flow states"}
    _curves(left, lines, errors)
    left.set(xlabel="step", ylabel="MSE of softmax(Z)·W_e", yscale="log")
    _curves(right, lines, {"ce_masked": "aligned", "reference_ce_masked": "reference"})
    right.set(xlabel="step", ylabel="CE at masked positions", ylim=(0, None))
    save_figure(figure, picture)
    return True


def _curves(axes: Any, lines: list[dict[str, Any]], names: dict[str, str]) -> None:
    for name, label in names.items():
        known = [(line["step"], line[name]) for line in lines if line.get(name) is not None]
        if known:
            axes.plot(*zip(*known, strict=True), label=label)
    axes.legend()

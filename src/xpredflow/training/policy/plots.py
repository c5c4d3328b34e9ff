"""Pictures of a policy and of its training, where matplotlib is installed (the `plot` extra)."""

from pathlib import Path
from typing import Any

import torch

from xpredflow.files import save_figure
from xpredflow.policies.beta import BetaNetwork
from xpredflow.training.common.plots import can_draw
from xpredflow.training.common.runs import read_log
from xpredflow.training.policy.log import BINS
from xpredflow.training.policy.synthetic import SHARES_USED, fractions


def plot_policy(network: BetaNetwork, picture: Path) -> bool:
    """Heat maps of E[a] at the beginning, middle and end; False where matplotlib is missing."""
    if not can_draw():
        return False
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure  # not pyplot: no display and no global state

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = figure.subplots(1, len(SHARES_USED), sharey=True)
    c, t = torch.linspace(0.005, 0.995, 100), torch.linspace(0.0, 0.99, 100)
    images = []
    for axes, rho in zip(panels, SHARES_USED, strict=True):
        values = fractions(network, c, t, rho).T.numpy()
        norm = LogNorm(vmin=1 / 256, vmax=1)
        where = {"origin": "lower", "extent": (0, 1, 0, 1), "aspect": "auto"}
        images.append(axes.imshow(values, norm=norm, **where))
        axes.set(title=f"ρ = {rho:g}", xlabel="confidence c")
    panels[0].set_ylabel("progress t")
    figure.colorbar(images[0], ax=panels, label="expected fraction a of the rest")
    save_figure(figure, picture)
    return True


def plot_training(log: Path, picture: Path) -> bool:
    """The run's log in six panels; False where matplotlib is missing or there is nothing yet."""
    lines = [line for line in read_log(log) if "reward" in line]
    if not can_draw() or not lines:
        return False
    from matplotlib.figure import Figure

    checks = [line for line in read_log(log) if "validation" in line]
    figure = Figure(figsize=(13, 7), layout="constrained")
    reward, used, actions, reedits, entropy, drift = figure.subplots(2, 3).flat
    _curves(reward, lines, "reward", "accuracy", "mixed")
    _curves(used, lines, "passes_used")
    _curves(reedits, lines, "reedits")
    _curves(entropy, lines, "entropy")
    _curves(drift, lines, "kl_start", "clip_share")
    for axes, name in ((reward, "accuracy"), (used, "passes")):
        values = [check["validation"][name] for check in checks]
        axes.plot([check["step"] for check in checks], values, "o--", label=f"validation {name}")
        axes.legend()
    image = _action_map(actions, lines)
    figure.colorbar(image, ax=actions, label="mean fraction a drawn")
    save_figure(figure, picture)
    return True


def _curves(axes: Any, lines: list[dict[str, Any]], *names: str) -> None:
    for name in names:
        axes.plot([line["step"] for line in lines], [line[name] for line in lines], label=name)
    axes.set(xlabel="update")
    axes.legend()


def _action_map(axes: Any, lines: list[dict[str, Any]]) -> Any:
    """Mean action by confidence (up) over updates (right); empty bins stay empty."""
    nothing = float("nan")
    rows = [[nothing if a is None else a for a in line["action_by_confidence"]] for line in lines]
    image = axes.imshow(
        torch.tensor(rows).T.numpy(),
        origin="lower",
        aspect="auto",
        extent=(lines[0]["step"] - 0.5, lines[-1]["step"] + 0.5, 0, 1),
        vmin=0,
        vmax=1,
    )
    axes.set(xlabel="update", ylabel=f"confidence c, {BINS} bins")
    return image

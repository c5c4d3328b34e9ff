"""Pictures of a policy and of its training, where matplotlib is installed (the `plot` extra)."""

from pathlib import Path
from typing import Any

import torch

from xpredflow.figures import COLOURS, name_lines, new_figure
from xpredflow.files import save_figure
from xpredflow.policies.beta import BetaNetwork
from xpredflow.training.common.plots import RUNNING, can_draw, plot_names
from xpredflow.training.common.runs import read_log
from xpredflow.training.policy.log import BINS
from xpredflow.training.policy.synthetic import SHARES_USED, begun_fractions, fractions

LEVELS = {1 / 64: "1/64", 1 / 16: "1/16", 1 / 4: "1/4", 1 / 2: "1/2"}  # of a, drawn as lines


def plot_policy(
    network: BetaNetwork, picture: Path, init: str | None = None, note: str = "", name: str = ""
) -> bool:
    """Heat maps of E[a] at the beginning, middle and end; False where matplotlib is missing.

    `init` is the heuristic that it began from, drawn over it; `note` stands below, `name` above.
    """
    if not can_draw():
        return False
    from matplotlib.colors import LogNorm

    figure, [panels] = new_figure(1, len(SHARES_USED), width=4, height=4, sharey=True)
    c, t = torch.linspace(0.005, 0.995, 100), torch.linspace(0.0, 0.99, 100)
    images = []
    for axes, rho in zip(panels, SHARES_USED, strict=True):
        values = fractions(network, c, t, rho).T.numpy()
        axes.grid(False)
        norm = LogNorm(vmin=1 / 256, vmax=1)
        where = {"origin": "lower", "extent": (0, 1, 0, 1), "aspect": "auto"}
        images.append(axes.imshow(values, norm=norm, **where))
        begun = begun_fractions(init, c, t, rho)
        if begun is not None:
            _contours(axes, c, t, begun.T.numpy(), "black", "dashed")
        lines = _contours(axes, c, t, values, "white", "solid")
        if lines is not None:  # the dashed ones have the same levels, in the same order
            axes.clabel(lines, fmt=LEVELS, fontsize=8)
        axes.set(title=f"share of the budget used ρ = {rho:g}", xlabel="confidence c")
    panels[0].set_ylabel("progress t")
    bar = figure.colorbar(images[0], ax=panels, label="expected fraction a of the rest")
    bar.set_ticks([1 / 256, *LEVELS, 1], labels=["1/256", *LEVELS.values(), "1"])
    dashed = "" if begun is None else f"; the same of {init}, where it began, in black dashes"
    title = f"Policy {name}: expected fraction a" if name else "Expected fraction a of the policy"
    figure.suptitle(f"{title}; lines of equal a in white{dashed}", fontsize="medium")
    if note:
        figure.supxlabel(note, fontsize="small")
    save_figure(figure, picture)
    return True


def _contours(axes: Any, c: Any, t: Any, values: Any, colour: str, style: str) -> Any:
    """The lines of equal a, None where there are none."""
    lowest, highest = float(values.min()), float(values.max())
    levels = [level for level in LEVELS if lowest < level < highest]
    look = {"colors": colour, "linestyles": style, "linewidths": 1.2}
    return axes.contour(c.numpy(), t.numpy(), values, levels=levels, **look) if levels else None


def plot_training(log: Path, picture: Path) -> bool:
    """The run's log in six panels; False where matplotlib is missing or there is nothing yet."""
    lines = [line for line in read_log(log) if "reward" in line]
    if not can_draw() or not lines:
        return False
    checks = [line for line in read_log(log) if "validation" in line]
    figure, panels = new_figure(2, 3, width=4.8, height=3.4)
    reward, used, actions, reedits, entropy, drift = panels.flat
    _curves(reward, lines, checks, ("reward", "accuracy", "mixed"), "accuracy")
    _curves(used, lines, checks, ("passes_used",), "passes")
    _curves(reedits, lines, [], ("reedits",))
    _curves(entropy, lines, [], ("entropy",))
    _curves(drift, lines, [], ("kl_start", "clip_share"))
    image = _action_map(actions, lines)
    figure.colorbar(image, ax=actions, label="mean fraction a drawn")
    figure.suptitle(f"Policy training, {len(lines)} updates; {RUNNING}")
    save_figure(figure, picture)
    return True


def _curves(
    axes: Any,
    lines: list[dict[str, Any]],
    checks: list[dict[str, Any]],
    names: tuple[str, ...],
    checked: str = "",
) -> None:
    labels = {name: name.replace("_", " ") for name in names}
    ends = plot_names(axes, lines, labels, named=False)
    if checks:
        values = [check["validation"][checked] for check in checks]
        colour = COLOURS[len(names)]
        axes.plot([check["step"] for check in checks], values, "o--", markersize=4, color=colour)
        ends.append((values[-1], f"validation {checked}", colour))
    axes.set(xlabel="update")
    name_lines(axes, ends)


def _action_map(axes: Any, lines: list[dict[str, Any]]) -> Any:
    """Mean action by confidence (up) over updates (right); empty bins stay empty."""
    nothing = float("nan")
    rows = [[nothing if a is None else a for a in line["action_by_confidence"]] for line in lines]
    axes.grid(False)
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

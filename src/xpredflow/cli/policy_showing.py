"""One call of `policy show`: a table of expected actions, how it was trained, a picture."""

import json
from pathlib import Path
from typing import Any

import torch
import typer

from xpredflow.errors import InputError
from xpredflow.policies.beta import load_policy, policy_files
from xpredflow.training.policy.plots import SHARES_USED, fractions, plot_policy

CONFIDENCES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
PROGRESSES = (0.0, 0.25, 0.5, 0.75, 0.9)
PICTURES = (".png", ".svg", ".pdf")


def show_policy(file: str, out: Path | None) -> None:
    """Print the table; draw where `out` is given and matplotlib is there."""
    if out is not None and out.suffix not in PICTURES:
        raise InputError(
            f"--out is {str(out)!r}: name a picture that ends in {', '.join(PICTURES)}"
        )
    network = load_policy(file).network
    typer.echo(f"Expected fraction a of the rest at ρ = {SHARES_USED[0]:g}, c down, t across:\n")
    typer.echo("   c \\ t" + "".join(f"{t:>8g}" for t in PROGRESSES))
    values = fractions(network, torch.tensor(CONFIDENCES), torch.tensor(PROGRESSES), SHARES_USED[0])
    for c, row in zip(CONFIDENCES, values.tolist(), strict=True):
        typer.echo(f"{c:>8g}" + "".join(f"{a:>8.3f}" for a in row))
    about = json.loads(policy_files(file)[1].read_text()).get("training", {})
    typer.echo(f"\n{_origin(about)}")
    if out is None:
        return
    if plot_policy(network, out):
        typer.echo(f"picture: {out}")
    else:
        typer.echo("note: no picture without matplotlib: pip install 'xpredflow[plot]'", err=True)


def _origin(about: dict[str, Any]) -> str:
    """How it was trained, as far as its file says."""
    if "updates" not in about:
        said = ", ".join(f"{name} {value}" for name, value in about.items())
        return f"Trained: {said}" if said else "How it was trained is not recorded."
    config = about["config"]
    budget = config.get("budget", config.get("steps")) or "full"
    lines = [
        f"Trained on {config['task']} with model {config['model']}: {about['updates']} updates of"
        f" {config['prompts']} prompts × {config['group']} rollouts, budget {budget},"
        f" λ {config['completion']:g}, normalise {config['normalise']}, seed {config['seed']}.",
        f"Began with {config['init']}; prompts: {config['prompt_pool']}.",
    ]
    last = about.get("last", {})
    if "reward" in last:
        lines.append(
            f"Last update: reward {last['reward']:.3f}, solved {last['accuracy']:.0%},"
            f" {last['passes_used']:.1f} passes."
        )
    found = about.get("validation") or last.get("validation")
    if found:
        used = found.get("passes", found.get("steps"))
        lines.append(f"Validation: {found['accuracy']:.1%} of {found['n']} in {used:.1f} passes.")
    return "\n".join(lines)

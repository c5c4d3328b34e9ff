"""`xpredflow policy show`: a table of expected actions, how they were learned, a picture."""

from pathlib import Path
from typing import Annotated, Any

import typer

from xpredflow.errors import InputError

policy = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Look at a learned step-size policy.",
)
CONFIDENCES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
PROGRESSES = (0.0, 0.25, 0.5, 0.75, 0.9)
PICTURES = (".png", ".svg", ".pdf")


@policy.command()
def show(
    file: Annotated[
        str, typer.Argument(help="A policy's .safetensors or .json file, or an embedded one: tiny.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Also draw it: a .png, .svg or .pdf file.")
    ] = None,
) -> None:
    """How a learned policy acts, and how it was trained.

    \b
    Examples:
      xpredflow policy show tiny
      xpredflow policy show runs/policy/best --out policy.png
    """
    if out is not None and out.suffix not in PICTURES:
        raise InputError(
            f"--out is {str(out)!r}: name a picture that ends in {', '.join(PICTURES)}"
        )
    import json

    import torch

    from xpredflow.cli.training import show_picture
    from xpredflow.policies.beta import load_policy, policy_files
    from xpredflow.training.policy.plots import plot_policy
    from xpredflow.training.policy.synthetic import SHARES_USED, fractions, ignored, thresholds

    network, rho = load_policy(file).network, SHARES_USED[0]
    typer.echo(f"Expected fraction a of the rest at ρ = {rho:g}, c down, t across:\n")
    typer.echo("   c \\ t" + "".join(f"{t:>8g}" for t in PROGRESSES))
    values = fractions(network, torch.tensor(CONFIDENCES), torch.tensor(PROGRESSES), rho)
    for c, row in zip(CONFIDENCES, values.tolist(), strict=True):
        typer.echo(f"{c:>8g}" + "".join(f"{a:>8.3f}" for a in row))
    if network.sets_thresholds:
        rows = thresholds(network, torch.tensor(PROGRESSES), rho)
        for name, row in zip(("commits from c =", "re-edits below t −"), rows, strict=True):
            typer.echo(f"{name:<20}" + "".join(f"{x:>8.3f}" for x in row.tolist()))
    about = json.loads(policy_files(file)[1].read_text()).get("training", {})
    said = ignored(network)
    typer.echo(f"\n{said}\n{_origin(about)}")
    if out is not None:
        init = about.get("config", {}).get("init")
        show_picture(out if plot_policy(network, out, init, said, file) else None, "picture")


def _origin(about: dict[str, Any]) -> str:
    """How it was trained, as far as its file says."""
    if "updates" not in about:
        said = ", ".join(f"{name} {value}" for name, value in about.items())
        return f"Trained: {said}" if said else "How it was trained is not recorded."
    config = about["config"]
    budget = config.get("budget", config.get("steps")) or "full"
    lines = [
        f"Trained on {config['task']} with model {config.get('model_name', config['model'])}:"
        f" {about['updates']} updates of {config['prompts']} prompts × {config['group']} rollouts,"
        f" budget {budget},"
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

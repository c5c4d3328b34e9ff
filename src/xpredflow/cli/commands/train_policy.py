"""`xpredflow train-policy`: learn how far each position moves in each pass."""

from pathlib import Path
from typing import Annotated, Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.completion import task_names
from xpredflow.cli.training_flags import Given, settings_flags
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.rollouts import rule_names, rule_settings

TASK = "minicode"


@settings_flags(PolicyConfig, rule_settings())  # the rules need torch, so this help does too
def train_policy(
    out: shared.RunDirectory,
    model: shared.Model = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            "-t",
            help=f"A task with a training split.  [default: {TASK}]",
            autocompletion=task_names,
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Prompts are the solved ones in this file of self-generate."
        ),
    ] = None,
    config: shared.ConfigFile = None,
    resume: shared.Resume = False,
    option: shared.SettingPairs = None,
    data: Annotated[
        str | None, typer.Option(help="File or hub id of a published task's problems.")
    ] = None,
    dtype: shared.Dtype = None,
    device: shared.Device = None,
    threads: shared.Threads = None,
    unsafe: shared.Unsafe = False,
    **flags: Any,
) -> None:
    """Train the flow's step-size policy with GRPO; the model's weights never change.

    The run can be stopped at any time and resumed with the same result. OUT/policy.safetensors is
    the last policy, OUT/best.safetensors the best on validation problems, OUT/log.jsonl the course
    of the run, OUT/policy.png its plot and OUT/run.toml all settings, for --config. Under torchrun
    the rollouts are shared out.

    \b
    Examples:
      xpredflow self-generate --data minicode --keep solved --out runs/solved.jsonl
      xpredflow train-policy runs/policy --task minicode --answers runs/solved.jsonl
      xpredflow train-policy runs/policy --task minicode --answers runs/solved.jsonl --resume
      xpredflow train-policy runs/other --config runs/policy/run.toml --seed 1
      xpredflow train-policy runs/quick -t minimath -n 50 --budget 1/4 --init jump:0.9 --tau 0.95
      xpredflow eval -t minicode --policy learned:runs/policy/best
      torchrun --nproc_per_node 2 -m xpredflow train-policy runs/policy -t minicode
    """
    said = Given("train-policy", PolicyConfig, flags, option, config, example="tau=0.95")
    from xpredflow.cli.training import set_threads, show_picture, watched
    from xpredflow.models import embedded
    from xpredflow.training.policy.run import train_policy as run

    set_threads(threads)
    settings = said.config(rule_names())
    prompts = said.input("answers", answers)
    with watched(settings.updates) as view:

        def show(line: dict[str, Any]) -> None:
            if line["step"] == 0 and prompts is None:
                view.note(
                    f"note: the prompts are the first {settings.pool} training problems, solvable"
                    " or not; the paper keeps those the model solves at full budget (self-generate"
                    " --keep solved, then --answers FILE)"
                )
            view.show(line["step"], describe(line, settings.init), line.get("warning"))

        done = run(
            said.input("model", model, embedded.DEFAULT),
            said.input("task", task, TASK),
            settings,
            out=out,
            answers=prompts,
            resume=resume,
            watch=show,
            rules=said.rules,
            device=device,
            dtype=said.input("dtype", dtype),
            data=said.input("data", data),
            unsafe=unsafe,
        )
    if not view.shown:
        return
    if done.stalled:
        typer.echo(
            f"stopped after update {done.updates}: no group had any signal for {settings.patience}"
            " updates (patience); the policy is saved as it is",
            err=True,
        )
    typer.echo(f"policy: {done.last}")
    if done.best is not None:
        typer.echo(f"best on validation: {done.best}")
    show_picture(done.picture)


def describe(line: dict[str, Any], init: str) -> str:
    """An update as one line of text."""
    parts = []
    if line.get("fit_error") is not None:
        parts.append(f"begins with {init}, imitated to {line['fit_error']:.2f} octaves")
    if "reward" in line:
        parts.append(
            f"reward {line['reward']:.3f}, solved {line['accuracy']:.0%}"
            f" (mixed groups {line['mixed']:.0%}), passes {line['passes_used']:.1f},"
            f" t {line['final_progress']:.3f}, re-edits {line['reedits']:.2f},"
            f" clipped {line['clip_share']:.0%}, KL {line['kl_start']:.3f}"
        )
    if line.get("entropy") is not None:
        parts.append(f"entropy {line['entropy']:.2f}")
    if "validation" in line:
        found = line["validation"]
        parts.append(f"validation {found['accuracy']:.1%} in {found['passes']:.1f} passes")
    return ", ".join([*parts, f"{line['seconds']:.1f} s"])

"""One call of `train-policy`: settings, prompts, progress, the end of the run."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import typer

from xpredflow.cli.running import load_model
from xpredflow.errors import InputError
from xpredflow.processes import join_processes, leave_processes
from xpredflow.sandbox import Sandbox
from xpredflow.settings import configured
from xpredflow.tasks import Task, make_task
from xpredflow.training.common.answers import read_answers
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.imitation import check_init
from xpredflow.training.policy.plots import plot_training
from xpredflow.training.policy.rollouts import Setup
from xpredflow.training.policy.run import PolicyTraining


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    out: Path
    source: dict[str, Any]
    task: str
    data: str | None
    answers: Path | None
    values: dict[str, Any]
    resume: bool
    threads: int | None
    unsafe: bool


def run(request: Request) -> None:
    """Train to the end, a line per update."""
    if request.threads is not None:
        torch.set_num_threads(request.threads)
    config = configured(PolicyConfig, request.values, "train-policy")
    check_init(config.init)
    task = make_task(request.task, request.data)
    check_splits(task, config)
    pool = prompt_pool(task, request.answers, config)
    share = join_processes()
    speak = typer.echo if share.rank == 0 else lambda *_, **__: None
    if request.answers is None:
        speak(
            f"note: the prompts are the first {len(pool)} training problems, solvable or not; the"
            " paper keeps those the model solves at full budget (self-generate --keep solved, then"
            " --answers FILE)",
            err=True,
        )
    model = load_model(request.source)
    with Sandbox(unsafe=request.unsafe) if task.runs_programs else nullcontext() as box:
        setup = Setup(model, task, config, None if box is None else box.runner, share)
        training = PolicyTraining(setup, pool, request.out, request.resume)
        try:
            for line in training:
                speak(describe(line, config), err=True)
                if "warning" in line:
                    speak(f"warning: {line['warning']}", err=True)
        except KeyboardInterrupt:
            speak(f"stopped after update {training.update}; go on with --resume", err=True)
            raise typer.Exit(130) from None
    if share.rank == 0:
        _end(training, request.out)
    leave_processes()


def check_splits(task: Task, config: PolicyConfig) -> None:
    """Refuse a task that has nothing to train on, or nothing to validate on."""
    for split, needed in (("train", True), ("validation", config.validate_every > 0)):
        try:
            size = task.size(split) if needed else 1
        except InputError as error:
            hint = "" if split == "train" else ", or pass -o validate_every=0"
            raise InputError(
                f"task {task.name!r} has no {split} split ({error}): choose another task{hint}"
            ) from error
        if size < 1:
            raise InputError(f"the {split} split of task {task.name!r} is empty")


def prompt_pool(task: Task, answers: Path | None, config: PolicyConfig) -> list[int]:
    """Numbers of training problems: those solved in `answers`, or simply the first ones."""
    if answers is None:
        return list(range(min(config.pool, task.size("train"))))
    found = read_answers(answers)
    solved = [a.number for a in found if a.solved and a.source == task.name]
    if not solved:
        raise InputError(
            f"{str(answers)!r} holds {len(found)} answers and none is a solved one of"
            f" {task.name!r}: write some with 'xpredflow self-generate --data {task.name}"
            " --keep solved', or choose the --task that they belong to"
        )
    if solved[-1] >= task.size("train"):
        raise InputError(
            f"{str(answers)!r} names problem {solved[-1]} of {task.name!r}, whose training split"
            f" has only {task.size('train')}: give the answers that belong to this data"
        )
    return solved


def describe(line: dict[str, Any], config: PolicyConfig) -> str:
    """An update as one line of text."""
    text = f"update {line['step']}/{config.updates}"
    if line.get("fit_error") is not None:
        text += f": begins with {config.init}, imitated to {line['fit_error']:.2f} octaves"
    if "reward" in line:
        text += (
            f": reward {line['reward']:.3f}, solved {line['accuracy']:.0%}"
            f" (mixed groups {line['mixed']:.0%}), passes {line['passes_used']:.1f},"
            f" t {line['final_progress']:.3f}, re-edits {line['reedits']:.2f},"
            f" clipped {line['clip_share']:.0%}, KL {line['kl_start']:.3f}"
        )
    if line.get("entropy") is not None:
        text += f", entropy {line['entropy']:.2f}"
    if "validation" in line:
        found = line["validation"]
        text += f"; validation {found['accuracy']:.1%} in {found['passes']:.1f} passes"
    return f"{text}; {line['seconds']:.1f} s"


def _end(training: PolicyTraining, out: Path) -> None:
    if training.stalled:
        typer.echo(
            f"stopped: no group had any signal for {training.idle} updates (patience); the policy"
            " is saved as it is",
            err=True,
        )
    typer.echo(f"policy: {out / 'policy.safetensors'}")
    if (out / "best.safetensors").is_file():
        typer.echo(f"best on validation: {out / 'best.safetensors'}")
    if plot_training(out / "log.jsonl", out / "policy.png"):
        typer.echo(f"plot: {out / 'policy.png'}")

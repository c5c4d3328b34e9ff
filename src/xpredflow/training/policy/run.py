"""A whole training of a step-size policy in one call: from a model and a task to a file."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError
from xpredflow.models import embedded
from xpredflow.processes import join_processes, leave_processes
from xpredflow.sandbox import Sandbox
from xpredflow.tasks import Task, make_task
from xpredflow.training.common.answers import read_answers
from xpredflow.training.common.runs import follow
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.imitation import check_init
from xpredflow.training.policy.plots import plot_training
from xpredflow.training.policy.rollouts import Setup, effective_rules
from xpredflow.training.policy.trainer import BEST, LAST, PolicyTraining
from xpredflow.types import Model


@dataclass(frozen=True)
class TrainedPolicy:
    """What a training left behind: policy files for `learned:FILE`.

    `best` is None where nothing was validated, `stalled` says whether training was given up because
    no group of rollouts had any signal, `picture` is None where matplotlib is missing.
    """

    last: Path
    best: Path | None
    updates: int
    stalled: bool
    log: Path
    picture: Path | None


def train_policy(
    model: Model | str | Path,
    task: Task | str,
    config: PolicyConfig | None = None,
    *,
    out: str | Path,
    answers: str | Path | None = None,
    resume: bool = False,
    watch: Callable[[dict[str, Any]], None] | None = None,
    rules: dict[str, Any] | None = None,
    device: str | None = None,
    dtype: str | None = None,
    data: str | None = None,
    unsafe: bool = False,
) -> TrainedPolicy:
    """Train the flow's step-size policy with GRPO; the model's weights never change.

    `model` is a loaded one, a name or a path; `task` one with a training split. Prompts are the
    solved problems in `answers`, a file of self-generate, or simply the first ones. `rules` are
    the flow's, by name; `device` and `dtype` are for a model that is not loaded yet, `data` for
    a published task's file. `watch` is called with the log's line of every update; line 0
    is the start.

        from xpredflow import PolicyConfig, train_policy
        config = PolicyConfig(updates=60, budget="1/4", speed=0.2)
        done = train_policy("tiny-aligned", "minicode", config, out="runs/policy")
        generate("tiny-aligned", "...", policy=f"learned:{done.best}")
    """
    out, config, share = Path(out), config or PolicyConfig(), join_processes()
    # everything that can be wrong is looked at before the model is loaded
    check_init(config.init)
    effective_rules(rules or {})
    inputs: dict[str, Any] = {} if answers is None else {"answers": str(answers)}
    if isinstance(task, str):
        inputs |= {"task": task} | ({} if data is None else {"data": data})
        task = make_task(task, data)
    check_splits(task, config)
    pool = prompt_pool(task, answers, config)
    if isinstance(model, str | Path):
        inputs["model"] = str(model)
        inputs |= {} if dtype is None else {"dtype": dtype}
        model = embedded.load(model, dtype=dtype, device=device)
    with Sandbox(unsafe=unsafe) if task.runs_programs else nullcontext() as box:
        judge = None if box is None else box.runner
        setup = Setup(model, task, config, judge, share, rules or {})
        training = PolicyTraining(setup, pool, out, resume, inputs)
        follow(training, watch, training.stoppable())
    log, picture = out / "log.jsonl", out / "policy.png"
    drawn = share.rank == 0 and plot_training(log, picture)
    leave_processes()
    best = out / f"{BEST}.safetensors"
    return TrainedPolicy(
        out / f"{LAST}.safetensors",
        best if best.is_file() else None,
        training.update,
        training.stalled,
        log,
        picture if drawn else None,
    )


def check_splits(task: Task, config: PolicyConfig) -> None:
    """Refuse a task that has nothing to train on, or nothing to validate on."""
    for split, needed in (("train", True), ("validation", config.validate_every > 0)):
        try:
            size = task.size(split) if needed else 1
        except InputError as error:
            hint = "" if split == "train" else ", or set validate_every to 0"
            raise InputError(
                f"task {task.name!r} has no {split} split ({error}): choose another task{hint}"
            ) from error
        if size < 1:
            raise InputError(
                f"the {split} split of task {task.name!r} is empty: give more problems, or a"
                " column 'split' that says train, validation or test"
            )


def prompt_pool(task: Task, answers: str | Path | None, config: PolicyConfig) -> list[int]:
    """Numbers of training problems: those solved in `answers`, or simply the first ones."""
    if answers is None:
        return list(range(min(config.pool, task.size("train"))))
    found = read_answers(Path(answers))
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

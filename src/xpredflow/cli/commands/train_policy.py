"""`xpredflow train-policy` and `xpredflow policy show`: learn a step-size policy, look at one."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.options import given, merged

policy = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Look at a learned step-size policy.",
)


def train_policy(
    out: shared.RunDirectory,
    model: shared.Model = None,
    task: Annotated[
        str, typer.Option("--task", "-t", help="A task with a training split.")
    ] = "minicode",
    answers: Annotated[
        Path | None,
        typer.Option(help="Prompts are the solved ones in this file of self-generate."),
    ] = None,
    resume: shared.Resume = False,
    updates: Annotated[
        str | None,
        typer.Option("--updates", "-n", metavar="N", help="In all; may be raised on --resume."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Any other setting, such as group=16, budget=1/4, init=jump:0.9, tau=0.95.",
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="File or hub id of a published task's problems.")
    ] = None,
    dtype: shared.Dtype = None,
    device: shared.Device = None,
    threads: shared.Threads = None,
    unsafe: shared.Unsafe = False,
) -> None:
    """Train the flow's step-size policy with GRPO; the model's weights never change.

    The run can be stopped at any time and resumed with the same result. OUT/policy.safetensors is
    the last policy, OUT/best.safetensors the best on validation problems, OUT/log.jsonl the course
    of the run and OUT/policy.png its plot. Under torchrun the rollouts are shared out.

    \b
    Examples:
      xpredflow self-generate --data minicode --keep solved --out runs/solved.jsonl
      xpredflow train-policy runs/policy --task minicode --answers runs/solved.jsonl
      xpredflow train-policy runs/policy --task minicode --answers runs/solved.jsonl --resume
      xpredflow train-policy runs/quick -t minimath -n 50 -o budget=1/4 -o init=jump:0.9
      xpredflow eval -t minicode --policy learned:runs/policy/best
      torchrun --nproc_per_node 2 -m xpredflow train-policy runs/policy -t minicode
    """
    source = given({"source": model, "dtype": dtype, "device": device})
    values = merged(given({"updates": updates}), option, example="group=16")
    from xpredflow.cli.policy_training import Request, run

    run(Request(out, source, task, data, answers, values, resume, threads, unsafe))


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
    from xpredflow.cli.policy_showing import show_policy

    show_policy(file, out)

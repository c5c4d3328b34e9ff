"""`xpredflow demo`: what the library is about, in a minute."""

from typing import Annotated

import typer

from xpredflow.cli.completion import model_names, policy_names
from xpredflow.cli.named import given


def demo(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="An embedded model, a checkpoint's directory or a hub id.",
            autocompletion=model_names,
        ),
    ] = None,
    tasks: Annotated[
        str, typer.Option("--tasks", "-t", help="Separated by commas: minicode, minimath.")
    ] = "minicode,minimath",
    policy: Annotated[
        str | None,
        typer.Option(help="The flow's step-size policy.", autocompletion=policy_names),
    ] = None,
    number: Annotated[
        int, typer.Option("--number", "-n", help="Which validation problem, 0 to 499.", min=0)
    ] = 7,
    more: Annotated[
        int, typer.Option(help="Further problems for the comparison at the end.", min=0)
    ] = 20,
) -> None:
    """Watch a request being answered: flow, then mask prediction with the same number of passes.

    Each answer is graded: programs by running them against hidden tests in the sandbox, word
    problems by their result. A small table over further problems follows.

    \b
    Examples:
      xpredflow demo
      xpredflow demo --tasks minimath --number 12
      xpredflow demo --policy power:8 --more 0
    """
    from xpredflow.cli.demonstrating import run

    names = [name.strip() for name in tasks.split(",") if name.strip()]
    source = given({"source": model})
    run(source, names, given({"policy": policy}), number, more)

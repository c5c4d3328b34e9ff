"""`xpredflow demo`: what the library is about, in a minute."""

from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.options import given


def demo(
    model: shared.Model = None,
    tasks: Annotated[
        str, typer.Option("--tasks", "-t", help="Separated by commas: minicode, minimath.")
    ] = "minicode,minimath",
    policy: shared.Policy = None,
    number: Annotated[
        int, typer.Option("--number", "-n", help="Which validation problem, 0 to 499.", min=0)
    ] = 7,
    more: Annotated[
        int, typer.Option(help="Further problems for the comparison at the end.", min=0)
    ] = 6,
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

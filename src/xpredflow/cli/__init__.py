"""The command line. Nothing here imports torch until a command needs it: --help is instant."""

import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from xpredflow import __version__
from xpredflow.cli import (
    aligning,
    averaging,
    catalogue,
    comparing,
    demo,
    evaluating,
    generating,
    harnessing,
    policies,
    pretraining,
    reproducing,
    self_generating,
    soft_masking,
)
from xpredflow.errors import InputError


class Commands(TyperGroup):
    """Bad input ends every command the same way: the message alone, exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(generating.generate)
app.command()(demo.demo)
app.command("eval")(evaluating.evaluate)
app.command("lm-eval", context_settings=harnessing.SETTINGS)(harnessing.lm_eval)
app.command()(pretraining.pretrain)
app.command("self-generate")(self_generating.self_generate)
app.command()(aligning.align)
app.command()(averaging.average)
app.command("train-softmask")(soft_masking.train_softmask)
app.command("train-policy")(policies.train_policy)
app.add_typer(policies.policy, name="policy")
app.command()(reproducing.reproduce)
app.command()(comparing.compare)
app.command()(catalogue.models)
app.command()(catalogue.decoders)


def _version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"xpredflow {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def xpredflow(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Continuous decoding of masked diffusion language models.

    \b
    Examples:
      xpredflow demo
      xpredflow generate "Hello" --decoder mask --budget 1/4 --json
      xpredflow models
      xpredflow decoders flow
    """


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # a terminal without UTF-8 gets escapes rather than a crash in the middle of a text
            stream.reconfigure(errors="backslashreplace")
    app()

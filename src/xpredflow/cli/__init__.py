"""The command line. A command's file is imported when the command is called: --help is instant."""

import os
import re
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from xpredflow import __version__
from xpredflow.cli.training_flags import GroupedCommand
from xpredflow.errors import InputError, Recovered, unknown_name
from xpredflow.files import explained


class Lazy(NamedTuple):
    """Where a command is, and what the overview says of it."""

    where: str  # module:function below xpredflow.cli.commands, or module:typer app
    summary: str


# The overview lists the commands in these groups and in this order.
COMMANDS: dict[str, dict[str, Lazy]] = {
    "Decode": {
        "demo": Lazy("demo:demo", "Watch decoders answer the same request, side by side."),
        "generate": Lazy("generate:generate", "Decode prompts."),
        "serve": Lazy("serve:serve", "An OpenAI-compatible server."),
        "view": Lazy("view:view", "Recorded decodes as a page to play and look into."),
        "replay": Lazy("replay:replay", "Recorded decodes in the terminal, or as an animation."),
    },
    "Measure": {
        "eval": Lazy("eval:evaluate", "Accuracy and forward passes on graded tasks."),
        "compare": Lazy("compare:compare", "Accuracy over forward passes for several decoders."),
        "reproduce": Lazy("reproduce:reproduce", "The paper's tables and figures."),
        "lm-eval": Lazy("lm_eval:lm_eval", "Tasks of lm-evaluation-harness with our decoders."),
    },
    "Train": {
        "self-generate": Lazy("self_generate:self_generate", "A model's own answers to prompts."),
        "align": Lazy("align:align", "Align a model for x-prediction flow."),
        "train-policy": Lazy("train_policy:train_policy", "Train a step-size policy with GRPO."),
        "train-softmask": Lazy("train_softmask:train_softmask", "Fine-tune for soft masking."),
        "pretrain": Lazy("pretrain:pretrain", "Pretrain a small model on generated tasks."),
        "average": Lazy("average:average", "One checkpoint from several alignments."),
        "push": Lazy("push:push", "Publish a checkpoint with a model card."),
    },
    "Look up": {
        "models": Lazy("models:models", "Embedded models, and what can be loaded."),
        "tasks": Lazy("tasks:tasks", "Tasks, and what their problems look like."),
        "decoders": Lazy("decoders:decoders", "Decoders and policies, with their options."),
        "policy": Lazy("policy:policy", "Look at a learned step-size policy."),
    },
}


class Commands(TyperGroup):
    """Loads a command when it is called; bad input ends each the same way, with exit code 2."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = next((group[cmd_name] for group in COMMANDS.values() if cmd_name in group), None)
        if found is None:
            return None
        module, _, attribute = found.where.partition(":")
        target = getattr(import_module(f"xpredflow.cli.commands.{module}"), attribute)
        if isinstance(target, typer.Typer):
            return get_group(target)
        made = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=_HELP)
        settings = getattr(sys.modules[target.__module__], "SETTINGS", None)
        made.command(cmd_name, cls=GroupedCommand, context_settings=settings)(target)
        command = get_command(made)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        # not while the shell completes: there half a name is no mistake
        if not ctx.resilient_parsing and args[0] not in self.list_commands(ctx):
            raise unknown_name("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, lazy.summary) for name, lazy in group.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise _failed(str(error)) from None
        except BrokenPipeError:
            raise
        except OSError as error:  # whatever the place that reads or writes has not said itself
            raise _failed(f"{_place(error)}: {explained(error)}") from None
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and not _OUT_OF_MEMORY.search(str(error)):
                raise
            raise _failed(
                "out of memory: decode fewer prompts at once (max_batch), shorter answers"
                " (gen_length), or load the weights in a smaller dtype"
            ) from None
        except KeyboardInterrupt:  # where a command has more to say it has said so
            typer.echo("interrupted: nothing was kept; the same command begins anew", err=True)
            raise typer.Exit(130) from None


# In the words of torch, for a processor and for an accelerator.
_OUT_OF_MEMORY = re.compile(r"can't allocate memory|[Oo]ut of memory")


def _failed(message: str) -> typer.Exit:
    """What went wrong, in one line that a terminal can show; exit code 2."""
    line = " ".join(message.split())
    typer.echo(
        f"error: {''.join(c if c.isprintable() else ascii(c)[1:-1] for c in line)}", err=True
    )
    return typer.Exit(2)


def _place(error: OSError) -> str:
    """The file that an error of the system is about."""
    if error.filename is not None:
        return f"cannot use {os.fsdecode(error.filename)!r}"
    return "standard output cannot be written"


_HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)


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
      xpredflow generate "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
      xpredflow eval --task minimath --limit 20
      xpredflow decoders flow
    """


def main() -> None:
    """The console script."""
    _check_streams()
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # a terminal without UTF-8 gets escapes rather than a crash in the middle of a text
            stream.reconfigure(errors="backslashreplace")
    try:
        _run()
    except BrokenPipeError:  # `| head -1` has seen enough
        _close_quietly(0)
    except OSError as error:  # a full disk behind `>` may say so only at the end
        what = "standard output cannot be written"
        if error.filename is not None:  # or any other place that nobody expected to fail
            what = f"cannot use {os.fspath(error.filename)!r}"
        typer.echo(f"error: {what}: {explained(error)}", err=True)
        _close_quietly(2)


def _run() -> None:
    try:
        app(prog_name="xpredflow")
    except SystemExit as ending:
        if ending.code == 2:  # the error is said already
            with suppress(OSError):
                sys.stdout.flush()
            _close_quietly(2)
        sys.stdout.flush()
        raise


def _check_streams() -> None:
    """A closed standard input is an empty one; without standard output nothing can be said."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        print("error: standard output is closed: give it a place, such as > f", file=sys.stderr)
        sys.exit(2)


def _show_warning(message: Any, category: Any, *where: Any, **more: Any) -> None:
    """What was got round is a note to the user; other warnings are shown as ever."""
    if issubclass(category, Recovered):
        typer.echo(f"note: {message}", err=True)
    else:
        sys.stderr.write(warnings.formatwarning(message, category, *where[:2]))


def _close_quietly(code: int) -> None:
    """What is still buffered has no reader: it must not be flushed when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)

"""Options that several commands have, each declared once; and what was given, by name."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from xpredflow.cli.completion import decoder_names, model_names, policy_names
from xpredflow.errors import InputError

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="An embedded model, a checkpoint's directory or a hub id; default: tiny-aligned, or"
        " tiny where weights are to be trained.",
        autocompletion=model_names,
    ),
]
Decoder = Annotated[
    str | None, typer.Option("--decoder", "-d", help="A decoder.", autocompletion=decoder_names)
]
Policy = Annotated[
    str | None, typer.Option(help="The flow's step-size policy.", autocompletion=policy_names)
]
RunDirectory = Annotated[Path, typer.Argument(help="Directory of the run; made if there is none.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run that the directory holds.")
]
Updates = Annotated[
    str | None, typer.Option("--updates", "-n", metavar="N", help="Updates in all.")
]
Threads = Annotated[int | None, typer.Option(help="CPU threads; default: one per core.", min=1)]

Tasks = Annotated[
    str,
    typer.Option(
        "--tasks", "-t", help="Separated by commas: minicode, minimath, humaneval, mbpp, gsm8k."
    ),
]
Limit = Annotated[int, typer.Option(help="Problems of each task.", min=1)]
Split = Annotated[str, typer.Option(help="validation while you choose, test once at the end.")]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="An option of the engine, or of every decoder that has it.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of Markdown.")]
Dtype = Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")]
Device = Annotated[str | None, typer.Option(help="Such as cpu or cuda.")]
Data = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TASK=PATH",
        help="File or hub id of a published task; default: its original hub dataset.",
    ),
]
Template = Annotated[
    str | None,
    typer.Option(help="Prompt template of published tasks: llada-instruct, llada-base, ..."),
]
Unsafe = Annotated[
    bool,
    typer.Option(
        "--unsafe-code-execution",
        help="Run generated programs with your own rights where no sandbox is to be had.",
    ),
]


def merged(
    named: dict[str, Any], pairs: list[str] | None, flag: str = "-o", example: str = "tau=0.95"
) -> dict[str, Any]:
    """Options with a flag of their own and NAME=VALUE pairs; nothing may be said twice."""
    options = dict(named)
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InputError(f"{flag} {pair!r}: expected NAME=VALUE, such as {flag} {example}")
        if name in options:
            raise InputError(f"{flag} {pair!r}: {name} was given before; give it once")
        options[name] = value
    return options


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Only what the user said: every default is declared where it is used."""
    return {name: value for name, value in values.items() if value is not None}


def command(context: typer.Context) -> str:
    """`xpredflow NAME` with the arguments and options that the user wrote, in declared order."""
    words = ["xpredflow", context.info_name or ""]
    for parameter in context.command.params:
        name = parameter.name or ""
        value = context.params.get(name)
        source = context.get_parameter_source(name)
        # by its name: which module the enumeration lives in depends on the version of typer
        if source is None or source.name != "COMMANDLINE" or value is None:
            continue
        values = value if isinstance(value, list | tuple) else [value]
        flag = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
        if value is True:
            words += flag
        else:
            words += [word for one in values for word in (*flag, str(one))]
    return shlex.join(words)

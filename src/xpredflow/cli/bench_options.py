"""Options that `reproduce` and `compare` share, each declared once."""

from typing import Annotated

import typer

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

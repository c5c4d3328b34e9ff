"""Options that several commands have, each declared once."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli.completion import decoder_names, model_names, policy_names

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

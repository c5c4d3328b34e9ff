"""`xpredflow self-generate`: the model's own answers to many prompts."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.options import given, merged


def self_generate(
    data: Annotated[
        str,
        typer.Option(
            help="Tasks (minicode, minimath, or both with a comma: their training split), a .jsonl"
            " or .parquet file with 'prompt' or 'messages', or a dataset on the hub."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The .jsonl file to write, one answer per line.")],
    model: shared.Model = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", metavar="N", help="Prompts to answer.")
    ] = None,
    first: Annotated[
        int | None, typer.Option(metavar="N", help="Number of the first prompt; default 0.")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(help="all, or solved: only answers that the task's grader accepts."),
    ] = None,
    retry: Annotated[
        bool,
        typer.Option(
            "--retry", help="Answer again, at full budget, what the task's grader rejects."
        ),
    ] = False,
    decoder: shared.Decoder = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Any option of the engine or the decoder, such as gen_length=512, budget=1/2.",
        ),
    ] = None,
    dtype: shared.Dtype = None,
    device: shared.Device = None,
    unsafe: shared.Unsafe = False,
) -> None:
    """Answer many prompts with the model itself, at full budget unless told otherwise.

    Alignment learns from such answers, and train-policy takes the solved ones as its prompts. A
    killed run goes on with the same command; a larger --count adds to a finished file.

    \b
    Examples:
      xpredflow self-generate --data minicode,minimath -n 10000 --out runs/answers.jsonl
      xpredflow self-generate --data minicode -n 4000 --keep solved --out runs/solved.jsonl
      xpredflow self-generate --data minicode -m runs/aligned/model -d flow -o budget=1/4 \\
        --retry --keep solved --out runs/flow.jsonl
      xpredflow self-generate -m GSAI-ML/LLaDA-8B-Instruct --out tulu.jsonl -o gen_length=512 \\
        --data allenai/tulu-3-sft-personas-code
      torchrun --nproc_per_node 2 -m xpredflow self-generate --data minimath --out math.jsonl
    """
    source = given({"source": model, "dtype": dtype, "device": device})
    request = given({"count": count, "first": first, "keep": keep, "decoder": decoder})
    request |= {"retry": True} if retry else {}
    options = merged({}, option, example="gen_length=512")
    from xpredflow.cli.answering import run

    run(source, {"data": data, **request, "options": options}, out, unsafe)

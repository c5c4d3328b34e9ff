"""`xpredflow generate`: the options, and nothing about decoding itself.

Numbers are handed on as text: the engine declares their types and names a value that is wrong.
"""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli.completion import decoder_names, model_names, policy_names
from xpredflow.cli.options import given, merged
from xpredflow.cli.prompts import gather


def generate(
    prompt: Annotated[
        list[str] | None,
        typer.Argument(
            help="Prompts, one or several. Without any, standard input is read as one prompt."
            " [[mask:8]] in a prompt is a gap of 8 tokens to fill in.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            help='File with one prompt per line; a .jsonl file has {"prompt": ...} or'
            ' {"messages": [...]} per line. Blank lines are skipped; - is standard input.',
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Each line of standard input is a prompt of its own.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="An embedded model, a checkpoint's directory or a Hugging Face hub id."
            " Default: the embedded model.",
            autocompletion=model_names,
        ),
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(
            "--decoder",
            "-d",
            help="A decoder, or decoder:value such as threshold:0.8; `xpredflow decoders` lists"
            " them, the default first.",
            autocompletion=decoder_names,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="The flow's step-size policy: confidence, constant:1/16, learned:FILE, ...",
            autocompletion=policy_names,
        ),
    ] = None,
    policy_temperature: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Sample a learned policy's steps at this temperature."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            "-b",
            metavar="N|SHARE",
            help="At most this many forward passes: a number, or a share of the"
            " response's length: 1/4, 25% or full.",
        ),
    ] = None,
    gen_length: Annotated[
        str | None, typer.Option(metavar="N", help="Tokens of the response.")
    ] = None,
    block_length: Annotated[
        str | None,
        typer.Option(metavar="N", help="Decode in blocks of this many tokens, left to right."),
    ] = None,
    seed: Annotated[
        str | None, typer.Option(metavar="N", help="Seed of everything that is drawn.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="System message of the chat.")] = None,
    chat: Annotated[
        bool | None,
        typer.Option(
            "--chat/--no-chat",
            help="Wrap the prompt in the model's chat template, or send it as it is."
            " Default: where there is a template.",
        ),
    ] = None,
    max_batch: Annotated[
        str | None,
        typer.Option(metavar="N", help="Prompts decoded together in one forward pass."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Any other option of the engine or the decoder, repeatable;"
            " `xpredflow decoders NAME` lists them.",
        ),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Load weights as float32, bfloat16 or float16.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Where to compute: cpu, cuda, ...")] = None,
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit of a hub model.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="Record every step in this file (JSON lines; .gz compresses)."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per prompt and line.")
    ] = False,
) -> None:
    """Decode prompts. In a terminal the text is shown as it settles; piped, only the text.

    Several texts are separated by a blank line; --json keeps them apart for certain. Ctrl-C
    prints what is finished (exit code 130). Exit codes: 1 when a prompt failed, 2 for bad input.

    \b
    Examples:
      xpredflow generate "Write a function that adds two numbers."
      xpredflow generate "Hello" --decoder flow --policy constant:1/16 --budget 1/4
      xpredflow generate "The capital of France is [[mask:8]]."
      xpredflow generate --file prompts.jsonl --json > answers.jsonl
      echo "Hello" | xpredflow generate --no-chat --trace run.jsonl.gz
      xpredflow generate "Hello" -o tau=0.95 -o reedit_margin=none
    """
    prompts = gather(prompt or [], file, lines)
    named = {
        "policy": policy,
        "policy_temperature": policy_temperature,
        "budget": budget,
        "gen_length": gen_length,
        "block_length": block_length,
        "seed": seed,
        "system": system,
        "chat": chat,
        "max_batch": max_batch,
    }
    source = {"source": model, "dtype": dtype, "device": device, "revision": revision}
    # torch is imported from here on
    from xpredflow.cli.running import Request, run

    options = merged(given(named), option)
    raise typer.Exit(run(Request(prompts, given(source), decoder, options, trace, json)))

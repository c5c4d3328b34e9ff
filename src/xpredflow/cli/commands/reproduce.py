"""`xpredflow reproduce`: the paper's tables on our models."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.completion import model_names
from xpredflow.cli.options import command, given, merged


def reproduce(
    context: typer.Context,
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE...",
            help="main, softmask, ablations, policy, passk, topk, anchor, consistency, alignment;"
            " or all.",
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="The model before alignment: a directory, a hub id or an embedded one (default:"
            " tiny and tiny-moe), which brings its aligned weights and a policy with it. Several"
            " for table main, each with its --aligned.",
            autocompletion=model_names,
        ),
    ] = None,
    aligned: Annotated[
        list[str] | None,
        typer.Option(help="The same model after alignment.", autocompletion=model_names),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A learned step-size policy; tiny for embedded models."),
    ] = None,
    softmask: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="A checkpoint fine-tuned with soft masks."),
    ] = None,
    align_run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The directory of an alignment run.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Answers that anchor and consistency show the model; default: the tasks' own.",
        ),
    ] = None,
    tasks: shared.Tasks = "minicode,minimath",
    limit: shared.Limit = 500,
    split: shared.Split = "test",
    option: shared.Option = None,
    out: Annotated[
        Path, typer.Option(help="Directory of the tables; samples are kept and reused there.")
    ] = Path("runs/results"),
    json: shared.Json = False,
    dtype: shared.Dtype = None,
    device: shared.Device = None,
    data: shared.Data = None,
    template: shared.Template = None,
    unsafe: shared.Unsafe = False,
) -> None:
    """Make the paper's tables and figures, with its figures beside ours.

    Each table becomes OUT/TABLE.md and .json, with a .png where there is a picture, and says which
    of the paper's claims hold on our models. A killed run goes on with the same command. `all`
    makes every table whose inputs were given and lists the others in OUT/README.md.

    \b
    Examples:
      xpredflow reproduce anchor --limit 64
      xpredflow reproduce main policy
      xpredflow reproduce all --align-run runs/aligned --softmask runs/soft/model
      xpredflow reproduce main -m tiny --aligned runs/aligned/model --policy runs/policy/best
      xpredflow reproduce main -t humaneval,mbpp --model GSAI-ML/LLaDA-8B-Instruct --device cuda \\
          --aligned DIR --policy FILE
    """
    from xpredflow.cli.benching import Request
    from xpredflow.cli.reproduction import run
    from xpredflow.experiments.inputs import Inputs

    inputs = Inputs(
        models=tuple(model or ()),
        aligned=tuple(aligned or ()),
        policy=policy,
        softmask=softmask,
        align_run=align_run,
        answers=answers,
    )
    request = Request(
        tasks=[name.strip() for name in tasks.split(",") if name.strip()],
        split=split,
        limit=limit,
        options=merged({}, option, example="gen_length=64"),
        out=out,
        json=json,
        command=command(context),
        source=given({"dtype": dtype, "device": device}),
        data=merged({}, data, "--data", "mbpp=mbpp.jsonl"),
        template=template,
        unsafe=unsafe,
    )
    run(tables, inputs, request)

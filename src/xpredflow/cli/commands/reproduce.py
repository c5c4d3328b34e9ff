"""`xpredflow reproduce`: the paper's tables on our models."""

import json
from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import command
from xpredflow.cli.bench import BenchFlags, stoppable
from xpredflow.cli.completion import model_names, table_names
from xpredflow.cli.flag_groups import expanded


@expanded
def reproduce(
    context: typer.Context,
    flags: BenchFlags,
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE...",
            help="main, softmask, ablations, policy, passk, topk, anchor, consistency, alignment;"
            " or all.",
            autocompletion=table_names,
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
    split: shared.Split = "test",
    limit: shared.Limit = 500,
    out: Annotated[
        Path, typer.Option(help="Directory of the tables; samples are kept and reused there.")
    ] = Path("runs/results"),
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
      xpredflow reproduce main -t humaneval -t mbpp -m GSAI-ML/LLaDA-8B-Instruct \\
          --aligned DIR --policy FILE --device cuda
    """
    from xpredflow.cli.progress import BenchBar
    from xpredflow.experiments.bench import Plan
    from xpredflow.experiments.inputs import Inputs
    from xpredflow.experiments.report import record, write
    from xpredflow.experiments.tables import Reproduction, write_index

    inputs = Inputs(
        models=tuple(model or ()),
        aligned=tuple(aligned or ()),
        policy=policy,
        softmask=softmask,
        align_run=align_run,
        answers=answers,
    )
    plan = Plan(
        tuple(flags.tasks()),
        out,
        split,
        limit,
        flags.options(),
        flags.dtype,
        flags.device,
        flags.unsafe,
        flags.quantize,
    )
    reproduction = Reproduction(tables, inputs, plan)
    watch, made_with = BenchBar(), command(context)
    with stoppable(watch, out):
        for table, report in reproduction.make(watch):
            page = write(report, table.name, out, made_with)
            shown = json.dumps(record(report, table.name, made_with)) if flags.json else page
            typer.echo(shown)
    for name, why in reproduction.left_out.items():
        typer.echo(f"left out: {name} {why}", err=True)
    write_index(out, reproduction.left_out)
    typer.echo(f"written to {out}", err=True)

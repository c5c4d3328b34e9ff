"""`xpredflow self-generate`: the model's own answers to many prompts."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import given
from xpredflow.cli.flag_groups import DecodingFlags, FileFlags, expanded


@expanded
def self_generate(
    data: Annotated[
        str,
        typer.Option(
            help="Tasks (minicode, mine.jsonl, mine.py:MyTask, or several with commas: their"
            " training split), a .jsonl or .parquet file with 'prompt' or 'messages', or a dataset"
            " on the hub."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The .jsonl file to write, one answer per line.")],
    decoding: DecodingFlags,
    own: FileFlags,
    limit: shared.LimitOrAll = None,
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
) -> None:
    """Answer many prompts with the model itself, at full budget unless told otherwise.

    Alignment learns from such answers, and train-policy takes the solved ones as its prompts. The
    first 10000 prompts are answered unless --limit says otherwise. A killed run goes on with the
    same command; a larger --limit adds to a finished file.

    \b
    Examples:
      xpredflow self-generate --data minicode,minimath --limit 10000 --out runs/answers.jsonl
      xpredflow self-generate --data minicode --limit 4000 --keep solved --out runs/solved.jsonl
      xpredflow self-generate --data mine.jsonl --grader number --keep solved --out own.jsonl
      xpredflow self-generate --data minicode -m runs/aligned/model -d flow --budget 1/4 \\
        --retry --keep solved --out runs/flow.jsonl
      xpredflow self-generate -m GSAI-ML/LLaDA-8B-Instruct --out tulu.jsonl -o gen_length=512 \\
        --data allenai/tulu-3-sft-personas-code
      torchrun --nproc_per_node 2 -m xpredflow self-generate --data minimath --out math.jsonl
    """
    options = decoding.options(example="gen_length=512")
    request = given({"limit": limit, "first": first, "keep": keep, "decoder": decoding.decoder})

    from xpredflow.cli.progress import PassesBar, load_model
    from xpredflow.models import embedded
    from xpredflow.processes import leave_processes
    from xpredflow.training.prompt_sources import prompt_source
    from xpredflow.training.self_generate import AnswerSpec, check_judge, check_path
    from xpredflow.training.self_generate import self_generate as run

    # everything that can be wrong is looked at before the model is loaded
    source = {"source": embedded.PRETRAINED, **decoding.source()}
    prompts = prompt_source(data, **own.of_file())
    spec = AnswerSpec(str(source["source"]), data, retry=retry, options=options, **request)
    check_judge(spec.within(len(prompts)), prompts)
    check_path(out)
    share = decoding.share()
    loaded = load_model(source)
    with PassesBar("answers", shown=share.rank == 0) as bar:
        try:
            kept = run(
                loaded,
                data,
                out,
                retry=retry,
                unsafe=own.unsafe,
                share=share,
                watch=bar,
                model_name=spec.model,
                **own.of_file(),
                **request,
                **options,
            )
        except KeyboardInterrupt:
            typer.echo(
                f"stopped after {bar.judged} more answers, which are kept beside {out}; the same"
                " command goes on",
                err=True,
            )
            raise typer.Exit(130) from None
    if share.rank == 0:
        judged = [answer for answer in kept if answer.solved is not None]
        line = f"{out}: {len(kept)} answers to {spec.within(len(prompts)).limit} prompts"
        if judged and spec.keep == "all":
            line += f", {sum(bool(a.solved) for a in judged)} of them right"
        typer.echo(line)
    leave_processes()

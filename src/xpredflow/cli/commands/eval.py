"""`xpredflow eval`: accuracy and passes of a decoder on graded tasks."""

import json as json_text
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.flag_groups import DecodingFlags, TaskFlags, expanded


@expanded
def evaluate(
    asked: TaskFlags,
    decoding: DecodingFlags,
    split: shared.Split = "validation",
    limit: shared.LimitOrAll = None,
    samples: Annotated[
        int, typer.Option(help="Answers per problem; with several, pass@k is given too.", min=1)
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for one JSON line per sample; an evaluation goes on there."),
    ] = None,
    json: shared.Json = False,
) -> None:
    """Measure accuracy and forward passes on graded tasks, by default minicode and minimath.

    A task of your own is a file with a row per problem, such as {"prompt": "What is 2 + 3?",
    "answer": 5, "grader": "number"}, or a class in a Python file. Programs that the model writes
    run in a sandbox. Without --limit the whole split is answered. Under torchrun the problems are
    shared out and the table is the same; with --tensor-parallel, the model's matrices are instead.

    \b
    Examples:
      xpredflow eval -t minicode -t minimath --decoder flow --policy confidence --budget 1/4
      xpredflow eval -t minimath -d threshold:0.9 --limit 100 --json
      xpredflow eval -d mask -b 1/2 --out runs/half       # killed? the same command goes on
      xpredflow eval -t minicode -d mask -o temperature=0.8 --samples 10
      xpredflow eval -t minimath --split test --draw 1 --limit 20
      xpredflow eval -t mine.jsonl --column prompt=question --grader number --split all
      xpredflow eval -t mine.py:MyTask --split test
      xpredflow eval -t humaneval --split test --data humaneval=HumanEval.jsonl.gz -m MODEL
      torchrun --nproc_per_node 2 -m xpredflow eval -t minimath
      torchrun --nproc_per_node 2 -m xpredflow eval -t minimath --tensor-parallel
    """
    options = decoding.options()

    from xpredflow.cli.progress import PassesBar, load_model
    from xpredflow.engine.request import DEFAULT_DECODER, resolve
    from xpredflow.evaluation import evaluate as run
    from xpredflow.evaluation.run import problem_count
    from xpredflow.processes import leave_processes

    tasks = asked.tasks()
    # everything that can be wrong is looked at before the model is loaded
    resolve(decoding.decoder or DEFAULT_DECODER, options)
    for one in tasks:
        problem_count(one, split, limit)
    share = decoding.share()
    loaded = load_model(decoding.source())
    for one in tasks:
        started = time.monotonic()
        with PassesBar(one.name, shown=share.rank == 0) as bar:
            try:
                found = run(
                    loaded,
                    one,
                    decoder=decoding.decoder,
                    split=split,
                    limit=limit,
                    samples=samples,
                    out=out,
                    watch=bar,
                    unsafe=asked.unsafe,
                    template=asked.template,
                    share=share,
                    **options,
                )
            except KeyboardInterrupt:
                _stopped(one.name, bar.judged, out)
                raise typer.Exit(130) from None
        if share.rank == 0:
            _print(found.summary, time.monotonic() - started, json)
    leave_processes()


def _stopped(task: str, judged: int, out: Path | None) -> None:
    """What was kept, and how to go on."""
    kept = (
        f"they are kept in {out}: the same command goes on"
        if out is not None
        else "nothing was kept; with --out DIRECTORY an evaluation goes on where it was"
    )
    typer.echo(f"stopped in {task} after {judged} more answers; {kept}", err=True)


def _print(row: Any, seconds: float, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text.dumps({**asdict(row), "seconds": round(seconds, 2)}))
        return
    decoder = row.decoder if row.policy is None else f"{row.decoder} ({row.policy})"
    typer.echo(
        f"{row.task:<10} {decoder}, budget {row.budget}: {row.accuracy:.1%}"
        f" [{row.low:.1%}, {row.high:.1%}] of {row.n};"
        f" passes {row.passes_mean:.1f} (median {row.passes_median:g}, max {row.passes_max});"
        f" {row.tokens_per_forward:.2f} tokens per pass; {seconds:.0f} s"
    )
    if len(row.pass_at) > 1:
        typer.echo("           " + "  ".join(f"pass@{k} {v:.1%}" for k, v in row.pass_at.items()))
    if row.rules:
        rules = ", ".join(f"{name}={value}" for name, value in row.rules.items())
        typer.echo(f"           rules: {rules}")

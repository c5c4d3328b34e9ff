"""`xpredflow align`: make a model predict its own clean states."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.options import given, merged


def align(
    out: shared.RunDirectory,
    answers: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="The model's own answers, from self-generate; may be repeated."
        ),
    ],
    model: shared.Model = None,
    resume: shared.Resume = False,
    updates: shared.Updates = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Any other setting, such as lr=5e-4, batch=64, accumulate=8, lora_rank=8,"
            " lora_targets=q_proj,v_proj, checkpointing=on, reference_every=10, dtype=bfloat16.",
        ),
    ] = None,
    device: shared.Device = None,
    threads: shared.Threads = None,
) -> None:
    """Align a model for x-prediction flow on answers that it generated itself.

    The run can be stopped at any time and resumed with the same result. At its end OUT/model is
    a checkpoint in the published layout, OUT/log.jsonl holds the losses of every step and
    OUT/losses.png their plot; how well clean tokens are kept, before and after, is printed and
    stands in OUT/model/alignment.json. Under torchrun the weights are sharded over the processes.

    \b
    Examples:
      xpredflow self-generate --data minicode,minimath -m runs/tiny/model --out own.jsonl
      xpredflow align runs/aligned -m runs/tiny/model --answers own.jsonl -o lr=5e-4
      xpredflow align runs/aligned -m runs/tiny/model --answers own.jsonl -o lr=5e-4 --resume
      xpredflow align runs/lora -m DIR --answers own.jsonl -n 400 -o lora_rank=8 -o lr=1e-4
      torchrun --nproc_per_node 8 -m xpredflow align OUT -m GSAI-ML/LLaDA-8B-Instruct \\
          --answers own.jsonl --device cuda -o checkpointing=on

    \b
    Then once more, on the states that the flow visits:
      xpredflow self-generate --data minicode,minimath -m runs/aligned/model --keep solved \\
          -d flow -o policy=power:8 -o commit_above=0.95 -o updates=1/4 --retry --out flow.jsonl
      xpredflow align runs/on_policy -m runs/aligned/model --answers flow.jsonl -n 400 \\
          -o lr=2e-4 -o clean_entropy=0.1 -o on_policy=0.4
    """
    source = given({"source": model, "device": device})
    values = merged(given({"updates": updates}), option, example="lr=5e-4")
    from xpredflow.cli.alignment import Request, run

    run(Request(out, source, answers, values, resume, threads))

"""One call of `reproduce`: every table made, written and printed as soon as it is there."""

import json
from dataclasses import replace

import typer

from xpredflow.cli.benching import Request, bench
from xpredflow.experiments.bench import Trial
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.report import Report, record, write
from xpredflow.experiments.tables import choose, write_index
from xpredflow.tasks import Generated

DECODERS = ("flow", "mask", "soft")  # what the tables decode with
VARIED = ("budget", "policy", "policy_temperature", "temperature")  # what their rows differ in


def run(names: list[str], inputs: Inputs, request: Request) -> None:
    """Everything that can be wrong is looked at before a model is loaded."""
    plan = request.plan()
    answering = all(isinstance(task, Generated) for task in plan.tasks)
    inputs = replace(inputs, tasks_answer=answering)
    chosen = choose(names, inputs)
    inputs.check()
    plan.check([Trial(decoder) for decoder in DECODERS], VARIED)
    decodes = any(table.decodes for table in chosen.tables)
    with bench(request, plan, decodes) as stand:
        for table in chosen.tables:
            typer.echo(f"{table.name}: {table.title}", err=True)
            report = table.make(stand, inputs)
            text = write(report, table.name, request.out, request.command)
            _print(report, table.name, text, request)
    for name, why in chosen.left_out.items():
        typer.echo(f"left out: {name} {why}", err=True)
    write_index(request.out, chosen.left_out)
    typer.echo(f"written to {request.out}", err=True)


def _print(report: Report, name: str, text: str, request: Request) -> None:
    if request.json:
        typer.echo(json.dumps(record(report, name, request.command)))
    else:
        typer.echo(text)

"""One call of `compare`: every point measured, then a table, a picture and a number each."""

import json

import typer

from xpredflow.cli.benching import Request, bench
from xpredflow.experiments.compare import compared, comparison_notes, measure
from xpredflow.experiments.report import record, write
from xpredflow.experiments.specs import budgets_of, contenders
from xpredflow.experiments.tables import COMPARISON, write_index
from xpredflow.models import embedded


def run(decoders: str, budgets: str, model: str | None, request: Request) -> None:
    """Everything that can be wrong is looked at before a model is loaded."""
    wanted = contenders(decoders, budgets_of(budgets))
    plan, source = request.plan(), model or embedded.DEFAULT
    plan.check([variant.trial for contender in wanted for variant in contender.variants])
    with bench(request, plan) as stand:
        points = measure(stand, source, wanted)
        report = compared(points, source, comparison_notes(stand))
    text = write(report, COMPARISON, request.out, request.command)
    write_index(request.out)
    if request.json:
        typer.echo(json.dumps(record(report, COMPARISON, request.command)))
    else:
        typer.echo(text)
    typer.echo(f"written to {request.out}", err=True)

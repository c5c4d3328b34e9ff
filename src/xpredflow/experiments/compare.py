"""Decoders against each other: accuracy over forward passes on one model, in one call."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from xpredflow.engine.request import DecodeOptions
from xpredflow.experiments.bench import Bench, Plan, Source, Watch, name_of, source_of
from xpredflow.experiments.compare_report import areas_of, compared
from xpredflow.experiments.contenders import BUDGETS, Contender, contenders
from xpredflow.experiments.disagreements import pages_directory, write_disagreements
from xpredflow.experiments.parallelism import Point
from xpredflow.experiments.report import Report, markdown, record, write
from xpredflow.experiments.tables import COMPARISON, write_index
from xpredflow.tasks import make_task
from xpredflow.tasks.base import Task
from xpredflow.types import Model

DECODERS = ("flow:confidence", "mask")
SWEEPS = ("threshold:0.5,0.7,0.9,0.95",)


@dataclass(frozen=True)
class Comparison:
    """Every point, the area of each decoder on each task, and the page that shows them."""

    points: list[Point]
    areas: dict[str, dict[str, float]]
    report: Report
    page: str
    command: str

    def record(self) -> dict[str, Any]:
        """Everything as plain values, each point with the rules that were in force."""
        return record(self.report, COMPARISON, self.command)


def compare(
    model: Model | str | Path | None,
    tasks: str | Task | Sequence[str | Task],
    decoders: Iterable[str] | None = None,
    sweeps: Iterable[str] | None = None,
    budgets: Iterable[str | int] = BUDGETS,
    *,
    split: str = "validation",
    limit: int = 100,
    out: str | Path | None = None,
    traces: str | Path | None = None,
    watch: Watch | None = None,
    dtype: str | None = None,
    device: str | None = None,
    unsafe: bool = False,
    command: str = "xpredflow.compare",
    **options: Unpack[DecodeOptions],
) -> Comparison:
    """Measure decoders on the same weights and problems.

        found = compare("tiny-aligned", "minimath", ["flow:learned:tiny", "mask"],
                        sweeps=["threshold:0.7,0.8,0.9"], budgets=["1/8", "1/4"], limit=50)
        print(found.page)
        print(found.areas["mask"]["minimath"])

    Each of `decoders` is run under each of `budgets`, each of `sweeps` once per value of the list
    at its end, at full budget; `+budget=...` in a spec replaces that. `model` is a loaded one, a
    name or a path; `tasks` are Tasks or what `make_task` takes. `options` reach every decoder that
    declares them. With `out`, samples are kept and reused there, and compare.md, .json and .png
    are written. With `traces`, the problems on which verdicts differ become pages there, with an
    index.html. What is wrong is said before a model is loaded.
    """
    if decoders is None and sweeps is None:
        decoders, sweeps = DECODERS, SWEEPS
    given = [tasks] if isinstance(tasks, str | Task) else list(tasks)
    plan = Plan(
        tuple(make_task(task) if isinstance(task, str) else task for task in given),
        None if out is None else Path(out).expanduser(),
        split,
        limit,
        dict(options),
        dtype,
        device,
        unsafe,
    )
    field = contenders(decoders or (), sweeps or (), budgets)
    plan.check([variant.trial for contender in field for variant in contender.variants])
    if traces is not None:
        pages_directory(traces)
    source = source_of(model)
    with Bench(plan, watch) as bench:
        points = measure(bench, source, field)
        report = compared(points, name_of(source), bench)
        if traces is not None:
            write_disagreements(bench, source, points, traces)
    page = markdown(report, command)
    if plan.out is not None:
        page = write(report, COMPARISON, plan.out, command)
        write_index(plan.out)
    return Comparison(points, areas_of(points), report, page, command)


def measure(bench: Bench, source: Source, field: list[Contender]) -> list[Point]:
    """Every variant of every decoder on every task."""
    points = []
    bench.watch.trials(len(bench.plan.tasks) * sum(len(one.variants) for one in field))
    for task in bench.plan.tasks:
        full = bench.plan.positions(task)
        for contender in field:
            for variant in contender.variants:
                found = bench.measure(source, task, variant.trial)
                share = found.summary.passes_mean / full
                point = (task.name, contender.spec, variant.setting, share, found, variant.trial)
                points.append(Point(*point))
    return points

"""Decoders compared fairly: settings chosen on some problems, shown once on others, and tested.

Each decoder has the same number of settings under the same caps. Those other than the flow may be
decoded from the original weights as well, and whichever is better there counts for them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from xpredflow.decoders.spec import parse_spec
from xpredflow.engine.request import DecodeOptions
from xpredflow.errors import InputError
from xpredflow.evaluation.identity import problems_digest
from xpredflow.experiments.bench import Bench, Measured, Plan, Source, Watch, name_of, source_of
from xpredflow.experiments.choice import (
    TARGETS,
    Against,
    Candidate,
    Chosen,
    choose,
    equal_field,
    paired,
    pooled,
    targets_in_passes,
)
from xpredflow.experiments.chosen_report import chosen_report
from xpredflow.experiments.contenders import BUDGETS, Contender
from xpredflow.experiments.report import Report, markdown, record, write
from xpredflow.experiments.tables import CHOSEN, write_index
from xpredflow.tasks import make_task
from xpredflow.tasks.base import Task
from xpredflow.types import Model

Shown = tuple[Chosen, Measured]


@dataclass(frozen=True)
class ChosenComparison:
    """What was measured to choose, what was chosen and shown, each with its test, and the page."""

    candidates: list[Candidate]
    shown: list[Shown]
    against: list[Against | None]
    report: Report
    page: str
    command: str

    def record(self) -> dict[str, Any]:
        """Everything as plain values."""
        return record(self.report, CHOSEN, self.command)


def compare_chosen(
    model: Model | str | Path | None,
    tasks: Sequence[str | Task],
    decoders: Iterable[str] = (),
    sweeps: Iterable[str] = (),
    budgets: Iterable[str | int] = BUDGETS,
    *,
    targets: Iterable[str | int | float] = TARGETS,
    original: Model | str | Path | None = None,
    choose_on: str = "validation",
    split: str = "test",
    draws: Sequence[Sequence[Task]] = (),
    choose_limit: int | None = None,
    limit: int = 500,
    out: str | Path | None = None,
    watch: Watch | None = None,
    dtype: str | None = None,
    device: str | None = None,
    unsafe: bool = False,
    command: str = "xpredflow.experiments.compare_chosen",
    **options: Unpack[DecodeOptions],
) -> ChosenComparison:
    """Choose each decoder's best setting on one split and show it on another.

        found = compare_chosen("tiny-aligned", ["minimath"], sweeps=["flow:power:4+tau=0.8,0.9",
                               "threshold:0.7,0.9"], budgets=["1/8", "full"], original="tiny")
        print(found.page)

    For each of `targets`, a mean number of passes, a decoder's setting is the most accurate on
    `choose_on` among those that stay within it. The first decoder or sweep is the reference of the
    paired tests. `draws` are further lists of the same tasks whose problems are shown too.
    """
    if choose_on == split:
        raise InputError(
            f"settings would be chosen and shown on the same split {split!r}: choose on validation"
            " and show on test"
        )
    own = tuple(make_task(task) if isinstance(task, str) else task for task in tasks)
    directory = None if out is None else Path(out).expanduser()
    chosen_plan = Plan(
        own, directory, choose_on, choose_limit or limit, dict(options), dtype, device, unsafe
    )
    lists = [own, *map(tuple, draws)]
    plans = [replace(chosen_plan, tasks=one, split=split, limit=limit) for one in lists]
    field = equal_field(decoders, sweeps, budgets)
    targets = list(targets)
    for plan in (chosen_plan, *plans):
        plan.check([variant.trial for contender in field for variant in contender.variants])
    for task in own:
        targets_in_passes(targets, chosen_plan.positions(task))
    _check_draws(plans)
    aligned, other = source_of(model), None if original is None else source_of(original)
    with Bench(chosen_plan, watch) as bench:
        candidates = _candidates(bench, field, aligned, other)
    chosen = [
        one
        for task in own
        for one in choose(
            [candidate for candidate in candidates if candidate.task == task.name],
            targets_in_passes(targets, chosen_plan.positions(task)),
        )
    ]
    shown = _show(plans, chosen, {name_of(s): s for s in (aligned, other) if s is not None}, watch)
    against = paired(shown, field[0].spec)
    report = chosen_report(chosen, shown, against, field, name_of(aligned), chosen_plan, plans)
    page = markdown(report, command)
    if directory is not None:
        page = write(report, CHOSEN, directory, command)
        write_index(directory)
    return ChosenComparison(candidates, shown, against, report, page, command)


def _check_draws(plans: list[Plan]) -> None:
    """Several lists of a task must hold other problems each, or some would count twice."""
    for tasks in zip(*(plan.tasks for plan in plans), strict=True):
        digests = [
            problems_digest(task, plan.split, plan.problems(task))
            for task, plan in zip(tasks, plans, strict=True)
        ]
        if len(set(digests)) < len(digests):
            raise InputError(
                f"task {tasks[0].name!r} has the same problems in every draw: show one draw of it"
            )


def _candidates(
    bench: Bench, field: list[Contender], aligned: Source, original: Source | None
) -> list[Candidate]:
    """Every setting measured where it will be chosen, one model after the other."""
    pairs = [(aligned, one) for one in field]
    if original is not None:
        # the flow needs weights that were aligned for it
        pairs += [(original, one) for one in field if parse_spec(one.spec).name != "flow"]
    bench.watch.trials(len(bench.plan.tasks) * sum(len(one.variants) for _, one in pairs))
    return [
        Candidate(
            task.name,
            contender.spec,
            name_of(source),
            variant,
            bench.measure(source, task, variant.trial),
        )
        for source, contender in pairs
        for task in bench.plan.tasks
        for variant in contender.variants
    ]


def _show(
    plans: list[Plan], chosen: list[Chosen], sources: dict[str, Source], watch: Watch | None
) -> list[Shown]:
    """Every chosen setting once on the problems of each plan, which are then taken together."""
    parts: dict[tuple[str, str, str], list[Measured]] = {}
    for plan in plans:
        with Bench(plan, watch) as bench:
            by_name = {task.name: task for task in plan.tasks}
            wanted = {one.key: one for one in chosen if one.candidate is not None}
            bench.watch.trials(len(wanted))
            for weights, source in sources.items():
                for key, one in wanted.items():
                    if one.weights == weights:
                        found = bench.measure(source, by_name[one.task], one.trial)
                        parts.setdefault(key, []).append(found)
    return [(one, pooled(parts[one.key])) for one in chosen if one.candidate is not None]

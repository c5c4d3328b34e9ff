"""A fair comparison as it is written: a line per decoder at each target, with its paired test."""

from dataclasses import asdict
from typing import Any

from xpredflow.experiments.bench import Measured, Plan
from xpredflow.experiments.choice import Against, Chosen, setting_of
from xpredflow.experiments.chosen_plot import draw_chosen
from xpredflow.experiments.compare_report import COSTS, COUNTED, costs
from xpredflow.experiments.contenders import Contender
from xpredflow.experiments.decoding_table import INTERVALS
from xpredflow.experiments.report import Report
from xpredflow.experiments.rules import rules_lines

NONE_SO_FAST = "no setting is that fast"


def chosen_report(
    chosen: list[Chosen],
    shown: list[tuple[Chosen, Measured]],
    against: list[Against | None],
    field: list[Contender],
    source: str,
    choosing: Plan,
    plans: list[Plan],
) -> Report:
    """Every decoder at every target, in that order; the first decoder is the reference."""
    reference = field[0].spec
    title = f"Decoders on {source}, settings chosen on {choosing.split}"
    found = {
        id(one): (measured, test) for (one, measured), test in zip(shown, against, strict=True)
    }
    return Report(
        title=title,
        header=[
            *("task", "passes ≤", "decoder", "weights", "setting", "cap", "accuracy, %"),
            *COSTS,
            "alone / reference alone",
            "p, corrected",
        ],
        rows=[_row(one, *found.get(id(one), (None, None)), reference) for one in chosen],
        data={
            "reference": reference,
            "settings": len(field[0].variants),
            "chosen": [_entry(one, *found.get(id(one), (None, None))) for one in chosen],
        },
        notes=_notes(field, choosing, plans),
        rules=rules_lines([measured.rules for _, measured in shown]),
        draw=(lambda picture: draw_chosen(shown, picture, title)) if shown else None,
    )


def _row(one: Chosen, found: Measured | None, test: Against | None, reference: str) -> list[str]:
    head = [one.task, str(one.target), one.decoder]
    if found is None or one.candidate is None:
        return [*head, "–", NONE_SO_FAST, *["–"] * (len(COSTS) + 4)]
    row = found.summary
    tested = ["reference" if one.decoder == reference else "–", "–"]
    if test is not None:
        tested = [f"{test.only_this} / {test.only_reference}", f"{test.corrected:.2g}"]
    return [
        *head,
        one.weights,
        setting_of(one.candidate.variant),
        found.budget,
        f"{100 * row.accuracy:.1f} [{100 * row.low:.1f}, {100 * row.high:.1f}]",
        *costs(row),
        *tested,
    ]


def _entry(one: Chosen, found: Measured | None, test: Against | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"task": one.task, "target": one.target, "decoder": one.decoder}
    if found is None or one.candidate is None:
        return entry | {"setting": None}
    return entry | {
        "weights": one.weights,
        "setting": setting_of(one.candidate.variant),
        "budget": found.budget,
        "chosen_by": asdict(one.candidate.found.summary),
        "summary": asdict(found.summary),
        "rules": found.rules,
        "against": None if test is None else test._asdict(),
    }


def _notes(field: list[Contender], choosing: Plan, plans: list[Plan]) -> list[str]:
    tasks = choosing.tasks
    counted = ", ".join(f"{choosing.problems(task)} of {task.name}" for task in tasks)
    tested = ", ".join(
        f"{sum(plan.problems(plan.tasks[i]) for plan in plans)} of {task.name}"
        for i, task in enumerate(tasks)
    )
    draws = f", {len(plans)} draws together" if len(plans) > 1 else ""
    return [
        f"{len(field[0].variants)} settings of each decoder, chosen on {choosing.split} ({counted})"
        f" and shown once on {plans[0].split} ({tested}{draws}).",
        "Chosen is, for each number of passes, the most accurate setting whose mean stays within"
        " it; on the other problems its mean may lie a little above. Where two kinds of weights"
        " stand in the table, the better of both was chosen for every decoder but the flow.",
        INTERVALS,
        f"The reference is {field[0].spec}. Alone are problems that only this decoder, or only the"
        " reference at the same number of passes, solves; p is McNemar's exact test of that,"
        " corrected by Holm's method over all tests of this page.",
        COUNTED,
    ]

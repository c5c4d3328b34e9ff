"""Every table by name, in the paper's order; making one or all of them."""

from pathlib import Path
from typing import NamedTuple

from xpredflow.errors import InputError, unknown_name
from xpredflow.experiments import (
    ablations,
    alignment_losses,
    anchor,
    clean_consistency,
    main_table,
    passk,
    policies,
    softmask,
    topk,
)
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.report import Report, Table
from xpredflow.files import write_atomically

MODULES = (
    main_table,
    softmask,
    ablations,
    policies,
    passk,
    topk,
    anchor,
    clean_consistency,
    alignment_losses,
)
TABLES: dict[str, Table] = {module.TABLE.name: module.TABLE for module in MODULES}
ALL = "all"


class Choice(NamedTuple):
    """Tables to make, and for those that cannot be made what is missing."""

    tables: list[Table]
    left_out: dict[str, str]


def choose(names: list[str], inputs: Inputs) -> Choice:
    """The tables by name; `all` leaves out those that lack an input, the others insist on it."""
    for name in names:
        if name not in (*TABLES, ALL):
            raise unknown_name("table", name, [*TABLES, ALL])
    missing = {name: inputs.missing(table.needs) for name, table in TABLES.items()}
    for name in names:
        if name != ALL and missing[name] is not None:
            raise InputError(f"table {name!r} needs {missing[name]}")
    if ALL not in names:
        return Choice([TABLES[name] for name in dict.fromkeys(names)], {})
    left_out = {name: f"needs {what}" for name, what in missing.items() if what is not None}
    return Choice([table for name, table in TABLES.items() if name not in left_out], left_out)


def write_index(made: dict[str, Report], left_out: dict[str, str], out: Path, command: str) -> None:
    """OUT/README.md: which tables there are, how many claims hold, what was left out and why."""
    lines = [f"- [{report.title}]({name}.md){_claims(report)}" for name, report in made.items()]
    parts = ["# Results", f"Made with `{command}`.", "\n".join(lines) or "No table was made."]
    if left_out:
        reasons = [f"- {TABLES[name].title} (`{name}`) {why}." for name, why in left_out.items()]
        parts += ["## Left out", "\n".join(reasons)]
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "README.md", "\n\n".join(parts) + "\n")


def _claims(report: Report) -> str:
    if not report.outcomes:
        return ""
    holding = sum(outcome.holds for outcome in report.outcomes)
    return f": {holding} of {len(report.outcomes)} claims hold"

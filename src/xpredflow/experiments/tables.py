"""Every table by name, in the paper's order; making one or all of them."""

import json
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
from xpredflow.experiments.report import Table
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
COMPARISON = "compare"  # what `xpredflow compare` leaves beside them


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


def write_index(out: Path, left_out: dict[str, str] | None = None) -> None:
    """OUT/README.md: the tables that are there, how each was made and how many claims hold."""
    made = {name: out / f"{name}.json" for name in (*TABLES, COMPARISON)}
    lines = [_line(name, file) for name, file in made.items() if file.is_file()]
    parts = ["# Results", "\n".join(lines) or "No table was made."]
    reasons = [
        f"- {TABLES[name].title} (`{name}`) {why}."
        for name, why in (left_out or {}).items()
        if not made[name].is_file()
    ]
    if reasons:
        parts += ["## Left out", "\n".join(reasons)]
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "README.md", "\n\n".join(parts) + "\n")


def _line(name: str, file: Path) -> str:
    made = json.loads(file.read_text())
    claims = [claim["holds"] for claim in made["claims"]]
    held = f", {sum(claims)} of {len(claims)} claims hold" if claims else ""
    return f"- [{made['title']}]({name}.md){held}; `{made['command']}`"

"""The paper's tables by name, in its order: choosing, making and listing them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from xpredflow.errors import InputError, unknown_name
from xpredflow.experiments import alignment_losses, anchor, clean_consistency
from xpredflow.experiments.appendix_tables import PASSK, POLICY, TOPK
from xpredflow.experiments.bench import Bench, Plan, Trial, Watch
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.paper_tables import ABLATIONS, MAIN, SOFTMASK
from xpredflow.experiments.report import Report, Table
from xpredflow.files import make_directory, read_object, write_atomically
from xpredflow.registry import TABLES
from xpredflow.tasks.base import Generated

PROBES = (anchor.TABLE, clean_consistency.TABLE, alignment_losses.TABLE)
for _table in (MAIN, SOFTMASK, ABLATIONS, POLICY, PASSK, TOPK, *PROBES):
    TABLES.register(_table.name, summary=_table.title)(_table)

ALL = "all"
COMPARISON = "compare"  # what `xpredflow compare` leaves beside them
CHOSEN = "chosen"  # and with --choose
DECODERS = ("flow", "mask", "soft")  # what the tables decode with
VARIED = ("budget", "policy", "policy_temperature", "temperature", "rules")  # what rows differ in


class Choice(NamedTuple):
    """Tables to make, and for those that cannot be made what is missing."""

    tables: list[Table]
    left_out: dict[str, str]


def choose(names: list[str], inputs: Inputs) -> Choice:
    """The tables by name; `all` leaves out those that lack an input, the others insist on it."""
    tables: dict[str, Table] = {name: TABLES[name] for name in TABLES}
    for name in names:
        if name not in (*tables, ALL):
            raise unknown_name("table", name, [*tables, ALL])
    missing = {name: inputs.missing(table.needs) for name, table in tables.items()}
    for name in names:
        if name != ALL and missing[name] is not None:
            raise InputError(f"table {name!r} needs {missing[name]}")
    if ALL not in names:
        return Choice([tables[name] for name in dict.fromkeys(names)], {})
    left_out = {name: f"needs {what}" for name, what in missing.items() if what is not None}
    return Choice([table for name, table in tables.items() if name not in left_out], left_out)


class Reproduction:
    """The tables that were asked for, one after the other; `left_out` says what cannot be made.

    Everything that can be wrong is looked at before a model is loaded.

        for table, report in Reproduction(["main"], Inputs(), Plan((make_task("minimath"),))):
            print(report.rows)
    """

    def __init__(self, names: list[str], inputs: Inputs, plan: Plan) -> None:
        answering = all(isinstance(task, Generated) for task in plan.tasks)
        self.plan, self.inputs = plan, replace(inputs, tasks_answer=answering)
        self.tables, self.left_out = choose(names, self.inputs)
        self.inputs.check()
        plan.check([Trial(decoder) for decoder in DECODERS], VARIED)

    def __iter__(self) -> Iterator[tuple[Table, Report]]:
        return self.make()

    def make(self, watch: Watch | None = None) -> Iterator[tuple[Table, Report]]:
        """Each table as soon as it is there."""
        decodes = any(table.decodes for table in self.tables)
        with Bench(self.plan, watch, decodes) as bench:
            for table in self.tables:
                bench.watch.say(f"{table.name}: {table.title}")
                yield table, table.make(bench, self.inputs)


def write_index(out: Path, left_out: dict[str, str] | None = None) -> None:
    """OUT/README.md: the tables that are there, how each was made and how many claims hold."""
    made = {name: out / f"{name}.json" for name in (*TABLES, COMPARISON, CHOSEN)}
    lines = [_line(name, file) for name, file in made.items() if file.is_file()]
    parts = ["# Results", "\n".join(lines) or "No table was made."]
    reasons = [
        f"- {TABLES[name].title} (`{name}`) {why}."
        for name, why in (left_out or {}).items()
        if not made[name].is_file()
    ]
    if reasons:
        parts += ["## Left out", "\n".join(reasons)]
    make_directory(out)
    write_atomically(out / "README.md", "\n\n".join(parts) + "\n")


def _line(name: str, file: Path) -> str:
    made = read_object(file, "remove it")
    try:
        claims = [bool(claim["holds"]) for claim in made["claims"]]
        held = f", {sum(claims)} of {len(claims)} claims hold" if claims else ""
        return f"- [{made['title']}]({name}.md){held}; `{made['command']}`"
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{file} is no table of ours ({type(error).__name__}: {error}): remove it, or make it"
            " again"
        ) from error

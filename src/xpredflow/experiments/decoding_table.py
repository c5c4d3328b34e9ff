"""Tables whose rows are ways of decoding and whose columns are models on tasks, as values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from xpredflow.experiments.bench import Bench, Measured, Trial
from xpredflow.experiments.claims import Claim, Column, pass_at
from xpredflow.experiments.inputs import Inputs, Pair
from xpredflow.experiments.report import Report
from xpredflow.experiments.rules import rules_lines

LLADA_HUMANEVAL = "paper: LLaDA-8B-Instruct, HumanEval"
LLADA_MBPP = "paper: LLaDA-8B-Instruct, MBPP"
LLADA_GSM8K = "paper: LLaDA-8B-Instruct, GSM8K"
LLADA2_HUMANEVAL = "paper: LLaDA2.0-mini, HumanEval"
LLADA2_MBPP = "paper: LLaDA2.0-mini, MBPP"

LEARNED = "learned"  # as an option's value: the learned policy that the inputs name
# The flow's two sets of rules: the paper's and nothing else, and those that the learned policy was
# trained under, which are the paper's with our extensions.
PAPERS_RULES = {"rules": "paper"}
OUR_RULES = {"rules": "policy", "max_idle_passes": 3}
TRAINED_UNDER = (
    "The learned policy was trained under the rules with our extensions; in the other rows it moves"
    " under the paper's."
)
INTERVALS = "Brackets hold Wilson's 95 % interval of the accuracy."
KS = (1, 2, 5, 10)


@dataclass(frozen=True)
class Method:
    """One row: which weights are decoded how, and what the paper reports for it.

    `same_passes_as` names an earlier row, whose mean number of passes becomes this one's budget;
    `settings_of` reads options that a checkpoint's directory brings with it.
    """

    key: str
    label: str
    decoder: str
    options: dict[str, Any] = field(default_factory=dict)
    weights: Literal["pretrained", "aligned", "softmask"] = "aligned"
    samples: int = 1
    same_passes_as: str | None = None
    settings_of: Callable[[str], dict[str, Any]] | None = None
    paper: dict[str, str] = field(default_factory=dict)

    def trial(
        self, bench: Bench, inputs: Inputs, source: str, column: dict[str, Measured]
    ) -> Trial:
        """How the row is decoded; what the user said with -o wins over a checkpoint's settings."""
        brought = self.settings_of(source) if self.settings_of else {}
        options = {n: v for n, v in brought.items() if n not in bench.plan.options} | self.options
        if options.get("policy") == LEARNED:
            options["policy"] = inputs.learned
        if self.same_passes_as is not None:
            options["budget"] = max(1, round(column[self.same_passes_as].summary.passes_mean))
        return Trial(self.decoder, options, self.samples)


def accuracy_and_passes(found: Measured) -> str:
    """The usual cell: accuracy with its interval in %, the passes used and their budget."""
    row = found.summary
    interval = f"[{100 * row.low:.1f}, {100 * row.high:.1f}]"
    return f"{100 * row.accuracy:.1f} {interval}, {row.passes_mean:.1f} of {found.cap} passes"


def pass_at_each_k(found: Measured) -> str:
    """pass@k for all k in %, the passes used and their budget."""
    shares = " / ".join(f"{100 * pass_at(found.summary, k):.1f}" for k in KS)
    return f"{shares}, {found.summary.passes_mean:.1f} of {found.cap} passes"


@dataclass(frozen=True)
class DecodingTable:
    """A table of the paper as a value: it differs from the others in rows and claims alone."""

    name: str
    title: str
    methods: tuple[Method, ...]
    claims: tuple[Claim[Column], ...]
    needs: tuple[str, ...] = ("aligned", "policy")
    notes: tuple[str, ...] = ()
    cell: Callable[[Measured], str] = accuracy_and_passes
    every_pair: bool = False  # of models; the others take the first
    most: int | None = None  # problems of each task, where the paper has no more either
    decodes: ClassVar[bool] = True

    def make(self, bench: Bench, inputs: Inputs) -> Report:
        """Run every method on every task and on the pairs of models that the table takes."""
        with bench.limited(self.most):
            return self.arranged(self._results(bench, inputs), [problems(bench)])

    def _results(self, bench: Bench, inputs: Inputs) -> dict[str, dict[str, Measured]]:
        results: dict[str, dict[str, Measured]] = {}
        pairs = inputs.pairs()[: None if self.every_pair else 1]
        for pair in pairs:
            for method in self.methods:
                source = _source(method, pair, inputs)
                name = source if method.weights == "softmask" else column_name(pair, pairs)
                # all tasks of a method together: models are loaded as seldom as possible
                for task in bench.plan.tasks:
                    column = results.setdefault(f"{name}, {task.name}", {})
                    trial = method.trial(bench, inputs, source, column)
                    column[method.key] = bench.measure(source, task, trial)
        return results

    def arranged(self, results: dict[str, dict[str, Measured]], notes: list[str]) -> Report:
        """The results beside the paper's, with what they say about its claims."""
        quoted = list(dict.fromkeys(name for method in self.methods for name in method.paper))
        rows = [
            [
                method.label,
                *(self.cell(column[method.key]) for column in results.values()),
                *(method.paper.get(name, "–") for name in quoted),
            ]
            for method in self.methods
        ]
        entries = [
            {
                "method": method.key,
                "label": method.label,
                "weights": method.weights,
                "ours": {name: column[method.key].entry() for name, column in results.items()},
                "paper": method.paper,
            }
            for method in self.methods
        ]
        summaries = {
            name: {key: found.summary for key, found in column.items()}
            for name, column in results.items()
        }
        intervals = [INTERVALS] if self.cell is accuracy_and_passes else []
        rows_of = [one.summary for column in results.values() for one in column.values()]
        seconds = sum(row.n * row.seconds_mean for row in rows_of)
        timed = [f"Decoding and grading these rows took {seconds / 60:.1f} minutes."] * (
            seconds > 0
        )
        return Report(
            title=self.title,
            header=["", *results, *quoted],
            rows=rows,
            data={"rows": entries, "seconds": round(seconds, 1)},
            outcomes=[c.judge(name, own) for name, own in summaries.items() for c in self.claims],
            notes=[*notes, *intervals, *self.notes, *timed],
            rules=rules_lines([m.rules for own in results.values() for m in own.values()]),
        )


def _source(method: Method, pair: Pair, inputs: Inputs) -> str:
    by_role = {"pretrained": pair.pretrained, "aligned": pair.aligned, "softmask": inputs.softmask}
    source = by_role[method.weights]
    assert source is not None, f"a table with {method.weights} rows must state that it needs them"
    return source


def column_name(pair: Pair, pairs: list[Pair]) -> str:
    """The model before alignment, with what it was aligned to where there are several."""
    several = [other.pretrained for other in pairs].count(pair.pretrained) > 1
    return f"{pair.pretrained} ({pair.aligned})" if several else pair.pretrained


def problems(bench: Bench) -> str:
    """Which problems the figures are of, and what a share of the budget is."""
    plan = bench.plan
    counts = ", ".join(f"{plan.problems(task)} of {task.name}" for task in plan.tasks)
    full = ", ".join(f"{plan.positions(task)} on {task.name}" for task in plan.tasks)
    return (
        f"Problems: {counts}, of the {plan.split} split. The full budget is a pass per"
        f" position: {full}."
    )

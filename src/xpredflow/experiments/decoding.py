"""Tables whose rows are ways of decoding and whose columns are models on tasks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from xpredflow.evaluation import Summary
from xpredflow.experiments.bench import Bench, Trial
from xpredflow.experiments.claims import Claim, Column
from xpredflow.experiments.inputs import Inputs, Pair
from xpredflow.experiments.report import Report, plain

LLADA_HUMANEVAL = "paper: LLaDA-8B-Instruct, HumanEval"
LLADA_MBPP = "paper: LLaDA-8B-Instruct, MBPP"
LLADA_GSM8K = "paper: LLaDA-8B-Instruct, GSM8K"
LLADA2_HUMANEVAL = "paper: LLaDA2.0-mini, HumanEval"
LLADA2_MBPP = "paper: LLaDA2.0-mini, MBPP"


@dataclass(frozen=True)
class Method:
    """One row: which weights are decoded how, and what the paper reports for it.

    `same_passes_as` names an earlier row, whose mean number of passes becomes this one's budget.
    """

    key: str
    label: str
    decoder: str
    options: dict[str, Any] = field(default_factory=dict)
    weights: Literal["pretrained", "aligned", "softmask"] = "aligned"
    samples: int = 1
    same_passes_as: str | None = None
    paper: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """What a table is made of, beside its inputs."""

    title: str
    methods: list[Method]
    claims: tuple[Claim[Column], ...]
    cell: Callable[[Summary], str]
    notes: tuple[str, ...] = ()


INTERVALS = "Brackets hold Wilson's 95 % interval of the accuracy."


def decoding_report(layout: Layout, bench: Bench, inputs: Inputs, pairs: list[Pair]) -> Report:
    """Run every method on every pair of models and every task."""
    results: dict[str, Column] = {}
    for pair in pairs:
        for method in layout.methods:
            # all tasks of a method together: models are loaded as seldom as possible
            _run(method, bench, _source(method, pair, inputs), pair, results)
    intervals = [INTERVALS] if layout.cell is accuracy_and_passes else []
    return arranged(layout, results, [problems(bench), *intervals])


def _source(method: Method, pair: Pair, inputs: Inputs) -> str:
    by_role = {"pretrained": pair.pretrained, "aligned": pair.aligned, "softmask": inputs.softmask}
    source = by_role[method.weights]
    assert source is not None, f"a table with {method.weights} rows must state that it needs them"
    return source


def _run(method: Method, bench: Bench, source: str, pair: Pair, results: dict[str, Column]) -> None:
    for task in bench.plan.tasks:
        name = source if method.weights == "softmask" else pair.pretrained
        column = results.setdefault(f"{name}, {task.name}", {})
        options = dict(method.options)
        if method.same_passes_as is not None:
            options["budget"] = max(1, round(column[method.same_passes_as].passes_mean))
        trial = Trial(method.decoder, options, method.samples)
        column[method.key] = bench.summary(source, task, trial)


def arranged(layout: Layout, results: dict[str, Column], notes: list[str]) -> Report:
    """The results beside the paper's, with what they say about its claims."""
    quoted = list(dict.fromkeys(name for method in layout.methods for name in method.paper))
    rows = [
        [
            method.label,
            *(layout.cell(column[method.key]) for column in results.values()),
            *(method.paper.get(name, "–") for name in quoted),
        ]
        for method in layout.methods
    ]
    entries = [
        {
            "method": method.key,
            "label": method.label,
            "weights": method.weights,
            "ours": {name: plain(column[method.key]) for name, column in results.items()},
            "paper": method.paper,
        }
        for method in layout.methods
    ]
    return Report(
        title=layout.title,
        header=["", *results, *quoted],
        rows=rows,
        data={"rows": entries},
        outcomes=[c.judge(name, column) for name, column in results.items() for c in layout.claims],
        notes=[*notes, *layout.notes],
    )


def problems(bench: Bench) -> str:
    """Which problems our figures are of."""
    plan = bench.plan
    counts = ", ".join(f"{plan.problems(task)} of {task.name}" for task in plan.tasks)
    return f"Ours: {plan.split} problems, {counts}."


def accuracy_and_passes(found: Summary) -> str:
    """The usual cell: accuracy with its interval in %, and the passes that were used."""
    low, high = 100 * found.low, 100 * found.high
    return f"{100 * found.accuracy:.1f} [{low:.1f}, {high:.1f}], {found.passes_mean:.1f} passes"

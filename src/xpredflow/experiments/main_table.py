"""Table 1: accuracy under a full and a quarter budget, and mask prediction at the flow's passes."""

from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import Claim, Column, fewer_passes, more_accurate
from xpredflow.experiments.decoding import (
    LLADA2_HUMANEVAL,
    LLADA2_MBPP,
    LLADA_GSM8K,
    LLADA_HUMANEVAL,
    LLADA_MBPP,
    Layout,
    Method,
    accuracy_and_passes,
    decoding_report,
)
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.report import Report, Table

TITLE = "Main table: accuracy in % and average passes"


def methods(inputs: Inputs) -> list[Method]:
    """Mask prediction on the model as it is, the flow on the aligned one."""
    return [
        Method(
            "full",
            "mask prediction, full budget",
            "mask",
            {},
            "pretrained",
            paper={
                LLADA_HUMANEVAL: "46.34",
                LLADA_MBPP: "39.60",
                LLADA_GSM8K: "69.22",
                LLADA2_HUMANEVAL: "79.88",
                LLADA2_MBPP: "63.20",
            },
        ),
        Method(
            "quarter",
            "mask prediction, budget 1/4",
            "mask",
            {"budget": "1/4"},
            "pretrained",
            paper={
                LLADA_HUMANEVAL: "33.54",
                LLADA_MBPP: "21.20",
                LLADA_GSM8K: "59.67",
                LLADA2_HUMANEVAL: "32.32",
                LLADA2_MBPP: "31.40",
            },
        ),
        Method(
            "flow",
            "x-prediction flow, budget ≤ 1/4",
            "flow",
            {"budget": "1/4", "policy": inputs.learned},
            paper={
                LLADA_HUMANEVAL: "45.12, 73/128 steps (appendix: table 72.9, text 81.9)",
                LLADA_MBPP: "33.00 (appendix: 32.60), 35/64 steps",
                LLADA_GSM8K: "62.02, 69/128 steps",
                LLADA2_HUMANEVAL: "59.76, 128/128 steps",
                LLADA2_MBPP: "43.80, 64/64 steps",
            },
        ),
        Method(
            "matched",
            "mask prediction, the flow's passes",
            "mask",
            {},
            "pretrained",
            same_passes_as="flow",
            paper={LLADA_HUMANEVAL: "11.59", LLADA_MBPP: "15.20", LLADA_GSM8K: "40.26"},
        ),
    ]


def _leads(found: Column) -> tuple[float, float]:
    """The flow's lead at equal passes and under equal caps."""
    flow = found["flow"].accuracy
    return flow - found["matched"].accuracy, flow - found["quarter"].accuracy


CLAIMS = (
    more_accurate(
        "flow",
        "quarter",
        "the flow solves more than mask prediction under the same cap",
        "the flow does not solve more than mask prediction under the same cap",
    ),
    fewer_passes(
        "flow",
        "quarter",
        "the flow stops before mask prediction does, as on LLaDA-8B-Instruct",
        "the flow does not stop before mask prediction does, unlike on LLaDA-8B-Instruct",
    ),
    more_accurate(
        "flow",
        "matched",
        "the flow solves more than mask prediction with as many passes",
        "the flow does not solve more than mask prediction with as many passes",
    ),
    Claim[Column](
        lambda found: _leads(found)[0] > _leads(found)[1],
        "the flow's lead is larger at equal passes than under equal caps",
        "the flow's lead is not larger at equal passes than under equal caps",
        lambda found: "{:+.1%} against {:+.1%}".format(*_leads(found)),
    ),
)


def make(bench: Bench, inputs: Inputs) -> Report:
    """The table on every pair of models that was given."""
    layout = Layout(TITLE, methods(inputs), CLAIMS, accuracy_and_passes)
    return decoding_report(layout, bench, inputs, inputs.pairs())


TABLE = Table("main", TITLE, ("aligned", "policy"), make)

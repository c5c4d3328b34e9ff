"""Table 3: the flow without one of its parts at a time."""

from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import Claim, Column, accuracies, more_accurate
from xpredflow.experiments.decoding import (
    LLADA_HUMANEVAL,
    Layout,
    Method,
    accuracy_and_passes,
    decoding_report,
)
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.report import Report, Table

TITLE = "Ablations under a budget of 1/4: accuracy in % and average passes"
PARTS = {
    "commitment": "hard commitment",
    "reediting": "re-editing",
    "alignment": "x-prediction alignment",
}


def methods(inputs: Inputs) -> list[Method]:
    """Rules are left out by value, alignment by decoding the model as it was before."""
    flow = {"budget": "1/4", "policy": inputs.learned}
    return [
        Method("full", "x-prediction flow", "flow", flow, paper={LLADA_HUMANEVAL: "45.12"}),
        Method(
            "commitment",
            "without hard commitment",
            "flow",
            {**flow, "commit": "off"},
            paper={LLADA_HUMANEVAL: "41.46"},
        ),
        Method(
            "reediting",
            "without re-editing",
            "flow",
            {**flow, "reedit_margin": None},
            paper={LLADA_HUMANEVAL: "26.83"},
        ),
        Method(
            "alignment",
            "without alignment",
            "flow",
            flow,
            "pretrained",
            paper={LLADA_HUMANEVAL: "17.07"},
        ),
    ]


def _worst_without_alignment(found: Column) -> bool:
    others = (found[part].accuracy for part in ("commitment", "reediting"))
    return found["alignment"].accuracy < min(others)


CLAIMS = (
    *(
        more_accurate(
            "full",
            part,
            f"the flow solves more with {name} than without",
            f"the flow does not solve more with {name} than without",
        )
        for part, name in PARTS.items()
    ),
    Claim(
        _worst_without_alignment,
        "alignment is the part that the flow misses most",
        "alignment is not the part that the flow misses most",
        accuracies(*PARTS),
    ),
)


def make(bench: Bench, inputs: Inputs) -> Report:
    """The table on the first pair of models."""
    layout = Layout(TITLE, methods(inputs), CLAIMS, accuracy_and_passes)
    return decoding_report(layout, bench, inputs, inputs.pairs()[:1])


TABLE = Table("ablations", TITLE, ("aligned", "policy"), make)

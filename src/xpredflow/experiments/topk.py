"""The appendix's table of readouts: the clean state as a mixture of the top k embeddings."""

from itertools import pairwise

from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import Claim, Column, accuracies, passes
from xpredflow.experiments.decoding import (
    LLADA_MBPP,
    Layout,
    Method,
    accuracy_and_passes,
    decoding_report,
)
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.report import Report, Table

TITLE = "Readout of the clean state under a budget of 1/4: accuracy in % and average passes"
PAPER = {
    1: "32.60 (main table: 33.00), 35.1 of 64 steps",
    2: "30.00, 37.2 of 64 steps",
    4: "30.40, 38.1 of 64 steps",
    8: "28.80, 38.6 of 64 steps",
    None: "29.00, 38.6 of 64 steps",
}
KEYS = tuple(str(k) for k in PAPER)


def methods(inputs: Inputs) -> list[Method]:
    """k from the argmax token alone to the full softmax."""
    flow = {"budget": "1/4", "policy": inputs.learned}
    return [
        Method(
            str(k),
            "full softmax" if k is None else f"k = {k}",
            "flow",
            {**flow, "top_k": k},
            paper={LLADA_MBPP: quoted},
        )
        for k, quoted in PAPER.items()
    ]


def _one_is_best(found: Column) -> bool:
    return found["1"].accuracy >= max(found[key].accuracy for key in KEYS)


def _passes_rise(found: Column) -> bool:
    steps = [found[key].passes_mean for key in KEYS]
    return steps[0] < steps[-1] and all(a <= b for a, b in pairwise(steps))


CLAIMS = (
    Claim(
        _one_is_best,
        "no softer readout solves more than the argmax token alone",
        "a softer readout solves more than the argmax token alone",
        accuracies(*KEYS),
    ),
    Claim(
        _passes_rise,
        "the softer the readout, the more passes it takes",
        "softer readouts do not take more and more passes",
        passes(*KEYS),
    ),
)


def make(bench: Bench, inputs: Inputs) -> Report:
    """The table on the first aligned model."""
    layout = Layout(TITLE, methods(inputs), CLAIMS, accuracy_and_passes)
    return decoding_report(layout, bench, inputs, inputs.pairs()[:1])


TABLE = Table("topk", TITLE, ("aligned", "policy"), make)

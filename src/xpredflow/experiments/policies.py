"""The appendix's table of step-size policies: two constants, confidence, the learned one."""

from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import Claim, Column, accuracies, fewer_passes, passes
from xpredflow.experiments.decoding import (
    LLADA_HUMANEVAL,
    LLADA_MBPP,
    Layout,
    Method,
    accuracy_and_passes,
    decoding_report,
)
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.report import Report, Table

TITLE = "Step-size policies under a budget of 1/4: accuracy in % and average passes"
ROWS = ("small", "large", "confidence", "learned")


def methods(inputs: Inputs) -> list[Method]:
    """The same flow with another policy in each row."""
    policies = ("constant:1/64", "constant:1/16", "confidence", inputs.learned)
    labels = ("constant 1/64", "constant 1/16", "confidence", "learned")
    paper = (
        ("0.20, 64.0 of 64 steps", "6.10, 128.0 of 128 steps"),
        ("29.40, 60.0 of 64 steps", "31.71, 120.1 of 128 steps"),
        ("25.00, 20.1 of 64 steps", "26.22, 53.6 of 128 steps"),
        (
            "32.60 (main table: 33.00), 35.1 of 64 steps",
            "45.12, 72.9 (text: 81.9) of 128 steps",
        ),
    )
    return [
        Method(
            key,
            label,
            "flow",
            {"budget": "1/4", "policy": policy},
            paper={LLADA_MBPP: mbpp, LLADA_HUMANEVAL: humaneval},
        )
        for key, label, policy, (mbpp, humaneval) in zip(ROWS, labels, policies, paper, strict=True)
    ]


def _learned_is_best(found: Column) -> bool:
    others = (found[key].accuracy for key in ROWS if key != "learned")
    return found["learned"].accuracy > max(others)


def _confidence_is_first(found: Column) -> bool:
    others = (found[key].passes_mean for key in ROWS if key != "confidence")
    return found["confidence"].passes_mean < min(others)


def _small_is_last(found: Column) -> bool:
    return found["small"].passes_mean >= max(found[key].passes_mean for key in ROWS)


CLAIMS = (
    Claim(
        _learned_is_best,
        "the learned policy is the most accurate",
        "the learned policy is not the most accurate",
        accuracies(*ROWS),
    ),
    fewer_passes(
        "learned",
        "large",
        "the learned policy takes fewer passes than a constant 1/16",
        "the learned policy does not take fewer passes than a constant 1/16",
    ),
    Claim(
        _confidence_is_first,
        "the confidence policy stops earliest",
        "the confidence policy does not stop earliest",
        passes(*ROWS),
    ),
    Claim(
        _small_is_last,
        "a constant 1/64 stops last or at the cap",
        "a constant 1/64 does not stop last",
        passes(*ROWS),
    ),
)


def make(bench: Bench, inputs: Inputs) -> Report:
    """The table on the first aligned model."""
    layout = Layout(TITLE, methods(inputs), CLAIMS, accuracy_and_passes)
    return decoding_report(layout, bench, inputs, inputs.pairs()[:1])


TABLE = Table("policy", TITLE, ("aligned", "policy"), make)

"""Table 2: mask prediction, soft masking and the flow on weights fine-tuned with soft masks."""

import json
from pathlib import Path
from typing import Any

from xpredflow.decoders.soft import SoftMasking
from xpredflow.errors import InputError
from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import more_accurate
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

TITLE = "Soft masking on its own fine-tuned checkpoint: accuracy in % and average passes"
LEARNED = ("k", "omega_s", "omega_a", "omega_b")  # what fine-tuning with soft masks settles


def methods(inputs: Inputs, softness: dict[str, Any]) -> list[Method]:
    """All rows decode the same weights."""
    return [
        Method(
            "full",
            "mask prediction, full budget",
            "mask",
            {},
            "softmask",
            paper={LLADA_HUMANEVAL: "44.51", LLADA_MBPP: "36.20"},
        ),
        Method(
            "mask",
            "mask prediction, budget 1/4",
            "mask",
            {"budget": "1/4"},
            "softmask",
            paper={LLADA_HUMANEVAL: "22.56", LLADA_MBPP: "18.60"},
        ),
        Method(
            "soft",
            "soft masking, budget 1/4",
            "soft",
            {"budget": "1/4", **softness},
            "softmask",
            paper={LLADA_HUMANEVAL: "28.66", LLADA_MBPP: "23.20"},
        ),
        Method(
            "flow",
            "x-prediction flow, budget ≤ 1/4",
            "flow",
            {"budget": "1/4", "policy": inputs.learned},
            "softmask",
            paper={LLADA_HUMANEVAL: "37.80", LLADA_MBPP: "33.80"},
        ),
    ]


CLAIMS = (
    more_accurate(
        "soft",
        "mask",
        "soft masking solves more than mask prediction",
        "soft masking does not solve more than mask prediction",
    ),
    more_accurate(
        "flow",
        "soft",
        "the flow solves more than soft masking on soft masking's own weights",
        "the flow does not solve more than soft masking on soft masking's own weights",
    ),
)


def softness_of(checkpoint: Path) -> dict[str, Any]:
    """ω and k as softmask.json beside the weights has them; nothing where there is none."""
    file = checkpoint / "softmask.json"
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text())
        return {name: found[name] for name in LEARNED if name in found}
    except (json.JSONDecodeError, TypeError) as error:
        raise InputError(
            f"{str(file)!r} cannot be read ({error}): expected an object with {', '.join(LEARNED)}"
        ) from error


def make(bench: Bench, inputs: Inputs) -> Report:
    """The table on the checkpoint that was given."""
    assert inputs.softmask is not None
    softness = softness_of(Path(inputs.softmask)) | {
        name: bench.plan.options[name] for name in LEARNED if name in bench.plan.options
    }
    used = {name: softness.get(name, getattr(SoftMasking(), name)) for name in LEARNED}
    notes = (
        "Soft masking blends with " + ", ".join(f"{n} = {v}" for n, v in used.items()) + ".",
        "The paper's caption says that all rows use the same weights, its text that the flow's were"
        " aligned first. Here all rows use those of --softmask: for the other reading, align them"
        " and give the result.",
    )
    layout = Layout(TITLE, methods(inputs, softness), CLAIMS, accuracy_and_passes, notes)
    return decoding_report(layout, bench, inputs, inputs.pairs()[:1])


TABLE = Table("softmask", TITLE, ("softmask", "policy"), make)

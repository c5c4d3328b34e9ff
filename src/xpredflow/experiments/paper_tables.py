"""The tables of the paper's main part as values: main, softmask and ablations."""

from xpredflow.experiments.claims import (
    Claim,
    Column,
    fewer_passes,
    larger_lead,
    lowest,
    more_accurate,
)
from xpredflow.experiments.decoding_table import (
    LEARNED,
    LLADA2_HUMANEVAL,
    LLADA2_MBPP,
    LLADA_GSM8K,
    LLADA_HUMANEVAL,
    LLADA_MBPP,
    OUR_RULES,
    PAPERS_RULES,
    TRAINED_UNDER,
    DecodingTable,
    Method,
)
from xpredflow.experiments.inputs import softness_of

FULL, QUARTER = {"budget": "full"}, {"budget": "1/4"}
PAPERS_FLOW = {**QUARTER, "policy": LEARNED, **PAPERS_RULES}
OUR_FLOW = {**QUARTER, "policy": LEARNED, **OUR_RULES}


def _against_mask(flow: str, matched: str, who: str) -> tuple[Claim[Column], ...]:
    """What the paper says of the flow beside mask prediction, of the rows with these keys."""
    return (
        more_accurate(
            flow,
            "quarter",
            f"{who} solves more than mask prediction under the same cap",
            f"{who} does not solve more than mask prediction under the same cap",
        ),
        fewer_passes(
            flow,
            "quarter",
            f"{who} stops before mask prediction does, as on LLaDA-8B-Instruct",
            f"{who} does not stop before mask prediction does, unlike on LLaDA-8B-Instruct",
        ),
        more_accurate(
            flow,
            matched,
            f"{who} solves more than mask prediction with as many passes",
            f"{who} does not solve more than mask prediction with as many passes",
        ),
        larger_lead(
            flow,
            matched,
            "quarter",
            f"the lead of {who} is larger at equal passes than under equal caps",
            f"the lead of {who} is not larger at equal passes than under equal caps",
        ),
    )


MAIN = DecodingTable(
    name="main",
    title="Main table: accuracy in % and average passes",
    methods=(
        Method(
            "full",
            "mask prediction, full budget",
            "mask",
            FULL,
            weights="pretrained",
            paper={
                LLADA_HUMANEVAL: "46.34",
                LLADA_MBPP: "39.60",
                LLADA_GSM8K: "69.22",
                LLADA2_HUMANEVAL: "79.88",
                LLADA2_MBPP: "63.20",
            },
        ),
        Method("full aligned", "the same on the aligned weights", "mask", FULL),
        Method(
            "quarter",
            "mask prediction, budget 1/4",
            "mask",
            QUARTER,
            weights="pretrained",
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
            "x-prediction flow, the paper's rules, budget ≤ 1/4",
            "flow",
            PAPERS_FLOW,
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
            "mask prediction, that flow's passes",
            "mask",
            weights="pretrained",
            same_passes_as="flow",
            paper={LLADA_HUMANEVAL: "11.59", LLADA_MBPP: "15.20", LLADA_GSM8K: "40.26"},
        ),
        Method(
            "extended",
            "x-prediction flow, with our extensions, budget ≤ 1/4",
            "flow",
            OUR_FLOW,
        ),
        Method(
            "matched extended",
            "mask prediction, that flow's passes",
            "mask",
            weights="pretrained",
            same_passes_as="extended",
        ),
    ),
    claims=(
        *_against_mask("flow", "matched", "the flow"),
        *_against_mask("extended", "matched extended", "the flow with our extensions"),
    ),
    notes=(TRAINED_UNDER,),
    every_pair=True,
)

SOFTMASK = DecodingTable(
    name="softmask",
    title="Soft masking on its own fine-tuned checkpoint: accuracy in % and average passes",
    needs=("softmask", "policy"),
    methods=(
        Method(
            "full",
            "mask prediction, full budget",
            "mask",
            FULL,
            weights="softmask",
            paper={LLADA_HUMANEVAL: "44.51", LLADA_MBPP: "36.20"},
        ),
        Method(
            "mask",
            "mask prediction, budget 1/4",
            "mask",
            QUARTER,
            weights="softmask",
            paper={LLADA_HUMANEVAL: "22.56", LLADA_MBPP: "18.60"},
        ),
        Method(
            "soft",
            "soft masking, budget 1/4",
            "soft",
            QUARTER,
            weights="softmask",
            settings_of=softness_of,
            paper={LLADA_HUMANEVAL: "28.66", LLADA_MBPP: "23.20"},
        ),
        Method(
            "flow",
            "x-prediction flow, the paper's rules, budget ≤ 1/4",
            "flow",
            PAPERS_FLOW,
            weights="softmask",
            paper={LLADA_HUMANEVAL: "37.80", LLADA_MBPP: "33.80"},
        ),
        Method(
            "extended",
            "x-prediction flow, with our extensions, budget ≤ 1/4",
            "flow",
            OUR_FLOW,
            weights="softmask",
        ),
    ),
    claims=(
        more_accurate(
            "soft",
            "mask",
            "soft masking solves more than mask prediction",
            "soft masking does not solve more than mask prediction",
        ),
        *(
            more_accurate(
                key,
                "soft",
                f"{who} solves more than soft masking on soft masking's own weights",
                f"{who} does not solve more than soft masking on soft masking's own weights",
            )
            for key, who in (("flow", "the flow"), ("extended", "the flow with our extensions"))
        ),
    ),
    notes=(
        TRAINED_UNDER,
        "The paper's caption says that all rows use the same weights, its text that the flow's were"
        " aligned first. Here all rows use those of --softmask: for the other reading, align them"
        " and give the result.",
    ),
)

PARTS = {
    "commitment": "hard commitment",
    "reediting": "re-editing",
    "alignment": "x-prediction alignment",
}
# Rules are left out by value, alignment by decoding the model as it was before.
ABLATIONS = DecodingTable(
    name="ablations",
    title="Ablations under a budget of 1/4: accuracy in % and average passes",
    methods=(
        Method(
            "full",
            "x-prediction flow, the paper's rules",
            "flow",
            PAPERS_FLOW,
            paper={LLADA_HUMANEVAL: "45.12"},
        ),
        Method(
            "commitment",
            "without hard commitment",
            "flow",
            {**PAPERS_FLOW, "commit": "off"},
            paper={LLADA_HUMANEVAL: "41.46"},
        ),
        Method(
            "reediting",
            "without re-editing",
            "flow",
            {**PAPERS_FLOW, "reedit_margin": None},
            paper={LLADA_HUMANEVAL: "26.83"},
        ),
        Method(
            "alignment",
            "without alignment",
            "flow",
            PAPERS_FLOW,
            weights="pretrained",
            paper={LLADA_HUMANEVAL: "17.07"},
        ),
        Method("extended", "x-prediction flow, with our extensions", "flow", OUR_FLOW),
    ),
    claims=(
        *(
            more_accurate(
                "full",
                part,
                f"the flow solves more with {name} than without",
                f"the flow does not solve more with {name} than without",
            )
            for part, name in PARTS.items()
        ),
        lowest(
            "accuracy",
            "alignment",
            ("commitment", "reediting"),
            "alignment is the part that the flow misses most",
            "alignment is not the part that the flow misses most",
        ),
    ),
    notes=(TRAINED_UNDER,),
)

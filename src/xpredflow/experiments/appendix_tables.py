"""The tables of the paper's appendix that decode, as values: policy, passk and topk."""

from xpredflow.experiments.claims import fewer_passes, higher_pass_at, highest, lowest, rising
from xpredflow.experiments.decoding_table import (
    KS,
    LEARNED,
    LLADA_HUMANEVAL,
    LLADA_MBPP,
    TRAINED_UNDER,
    DecodingTable,
    Method,
    pass_at_each_k,
)
from xpredflow.experiments.paper_tables import OUR_FLOW, PAPERS_FLOW

# Key, label, policy, and the paper's figures on MBPP and HumanEval.
POLICIES = (
    (
        "small",
        "constant 1/64",
        "constant:1/64",
        "0.20, 64.0 of 64 steps",
        "6.10, 128.0 of 128 steps",
    ),
    (
        "large",
        "constant 1/16",
        "constant:1/16",
        "29.40, 60.0 of 64 steps",
        "31.71, 120.1 of 128 steps",
    ),
    (
        "confidence",
        "confidence",
        "confidence",
        "25.00, 20.1 of 64 steps",
        "26.22, 53.6 of 128 steps",
    ),
    (
        "learned",
        "learned",
        LEARNED,
        "32.60 (main table: 33.00), 35.1 of 64 steps",
        "45.12, 72.9 (text: 81.9) of 128 steps",
    ),
)
POLICY = DecodingTable(
    name="policy",
    title="Step-size policies under a budget of 1/4: accuracy in % and average passes",
    methods=(
        *(
            Method(
                key,
                f"{label}, the paper's rules",
                "flow",
                {**PAPERS_FLOW, "policy": policy},
                paper={LLADA_MBPP: mbpp, LLADA_HUMANEVAL: humaneval},
            )
            for key, label, policy, mbpp, humaneval in POLICIES
        ),
        Method("extended", "learned, with our extensions", "flow", OUR_FLOW),
    ),
    claims=(
        highest(
            "accuracy",
            "learned",
            ("small", "large", "confidence"),
            "the learned policy is the most accurate",
            "the learned policy is not the most accurate",
        ),
        fewer_passes(
            "learned",
            "large",
            "the learned policy takes fewer passes than a constant 1/16",
            "the learned policy does not take fewer passes than a constant 1/16",
        ),
        lowest(
            "passes_mean",
            "confidence",
            ("small", "large", "learned"),
            "the confidence policy stops earliest",
            "the confidence policy does not stop earliest",
        ),
        highest(
            "passes_mean",
            "small",
            ("large", "confidence", "learned"),
            "a constant 1/64 stops last or at the cap",
            "a constant 1/64 does not stop last",
            ties=True,
        ),
    ),
    notes=(TRAINED_UNDER,),
)

DRAWS = 10
SAMPLED = {  # the policy's temperature τ; None: its expected action
    None: "34.15 / 35.84 / 38.09 / 39.50, 64 steps",
    1: "32.70 / 38.97 / 45.44 / 50.00, 64 steps",
    2: "30.80 / 37.52 / 44.97 / 49.50, 64 steps",
    4: "27.80 / 36.21 / 45.95 / 51.50, 64 steps",
    8: "20.90 / 30.73 / 43.11 / 51.50, 64 steps",
}
# LLaDA's own sampling: key, budget, the tokens' temperature, the paper's figures.
MASKED = (
    ("greedy", "1/4", 0.0, "11.25 / 11.86 / 12.75 / 14.00, 64 steps"),
    ("warm", "1/4", 0.4, "7.20 / 9.93 / 14.13 / 17.50, 64 steps"),
    ("hot", "1/4", 0.8, "6.70 / 10.19 / 15.55 / 19.50, 64 steps"),
    ("greedy full", "full", 0.0, "37.30 / 38.46 / 39.81 / 41.00, 256 steps"),
    ("hot full", "full", 0.8, "1.20 / 1.52 / 1.99 / 2.50, 256 steps"),
)
PASSK = DecodingTable(
    name="passk",
    title=f"Diversity: pass@{' / '.join(map(str, KS))} in % and average passes",
    methods=(
        *(
            Method(
                "expected" if tau is None else f"sampled {tau}",
                f"flow, the paper's rules, {'deterministic' if tau is None else f'τ = {tau}'}",
                "flow",
                PAPERS_FLOW if tau is None else {**PAPERS_FLOW, "policy_temperature": tau},
                samples=1 if tau is None else DRAWS,
                paper={f"{LLADA_MBPP} (n = 200)": quoted},
            )
            for tau, quoted in SAMPLED.items()
        ),
        Method("extended", "flow, with our extensions, deterministic", "flow", OUR_FLOW),
        Method(
            "extended sampled 1",
            "flow, with our extensions, τ = 1",
            "flow",
            {**OUR_FLOW, "policy_temperature": 1},
            samples=DRAWS,
        ),
        *(
            Method(
                key,
                f"mask prediction, {f'T = {heat}' if heat else 'greedy'}, budget {budget}",
                "mask",
                {"budget": budget, "temperature": heat},
                weights="pretrained",
                samples=DRAWS if heat else 1,
                paper={f"{LLADA_MBPP} (n = 200)": quoted},
            )
            for key, budget, heat, quoted in MASKED
        ),
    ),
    claims=(
        higher_pass_at(
            ("expected", 1),
            ("sampled 1", 1),
            "sampling the policy costs some pass@1",
            "sampling the policy does not cost pass@1",
        ),
        higher_pass_at(
            ("sampled 1", 10),
            ("expected", 10),
            "sampling the policy gains pass@10",
            "sampling the policy does not gain pass@10",
        ),
        higher_pass_at(
            ("sampled 1", 1),
            ("sampled 8", 1),
            "heating the policy to τ = 8 costs further pass@1",
            "heating the policy to τ = 8 does not cost further pass@1",
        ),
        higher_pass_at(
            ("sampled 1", 10),
            ("greedy full", 10),
            "pass@10 of the sampled policy at 1/4 exceeds greedy mask prediction's at full budget",
            "pass@10 of the sampled policy at 1/4 does not exceed greedy mask prediction's at full"
            " budget",
        ),
        higher_pass_at(
            ("greedy full", 1),
            ("hot full", 1),
            "sampling tokens at T = 0.8 costs mask prediction pass@1 at full budget",
            "sampling tokens at T = 0.8 does not cost mask prediction pass@1 at full budget",
        ),
    ),
    notes=(
        f"{DRAWS} draws per problem, unbiased pass@k. Without randomness all draws are the same, so"
        " one is decoded and pass@k is the accuracy; the paper's rows without randomness differ in"
        " k.",
        TRAINED_UNDER,
    ),
    cell=pass_at_each_k,
    most=200,
)

READOUTS = {  # k of the mixture; None: the full softmax
    1: "32.60 (main table: 33.00), 35.1 of 64 steps",
    2: "30.00, 37.2 of 64 steps",
    4: "30.40, 38.1 of 64 steps",
    8: "28.80, 38.6 of 64 steps",
    None: "29.00, 38.6 of 64 steps",
}
READOUT_KEYS = tuple(str(k) for k in READOUTS)
TOPK = DecodingTable(
    name="topk",
    title="Readout of the clean state under a budget of 1/4: accuracy in % and average passes",
    methods=(
        *(
            Method(
                str(k),
                f"{'full softmax' if k is None else f'k = {k}'}, the paper's rules",
                "flow",
                {**PAPERS_FLOW, "top_k": k},
                paper={LLADA_MBPP: quoted},
            )
            for k, quoted in READOUTS.items()
        ),
        Method("extended", "k = 1, with our extensions", "flow", {**OUR_FLOW, "top_k": 1}),
    ),
    claims=(
        highest(
            "accuracy",
            READOUT_KEYS[0],
            READOUT_KEYS[1:],
            "no softer readout solves more than the argmax token alone",
            "a softer readout solves more than the argmax token alone",
            ties=True,
        ),
        rising(
            "passes_mean",
            READOUT_KEYS,
            "the softer the readout, the more passes it takes",
            "softer readouts do not take more and more passes",
        ),
    ),
    notes=(TRAINED_UNDER,),
)

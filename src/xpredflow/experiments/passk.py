"""The appendix's table of diversity: pass@k of a sampled policy and of sampled tokens."""

from typing import NamedTuple

from xpredflow.evaluation import Summary
from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import Claim, Column
from xpredflow.experiments.decoding import LLADA_MBPP, Layout, Method, decoding_report
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.report import Report, Table

TITLE = "Diversity: pass@1 / 2 / 5 / 10 in % and average passes"
DRAWS = 10
KS = (1, 2, 5, 10)
NOTES = (
    f"{DRAWS} draws per problem, unbiased pass@k. Without randomness all draws are the same, so one"
    " is decoded and pass@k is the accuracy; the paper's rows without randomness differ in k.",
)


class Masked(NamedTuple):
    """A row of mask prediction: its budget, its temperature, the paper's figures."""

    label: str
    budget: str | None  # None: a pass per position
    temperature: float
    paper: str


FLOW_PAPER = {
    None: "34.15 / 35.84 / 38.09 / 39.50, 64 steps",
    1: "32.70 / 38.97 / 45.44 / 50.00, 64 steps",
    2: "30.80 / 37.52 / 44.97 / 49.50, 64 steps",
    4: "27.80 / 36.21 / 45.95 / 51.50, 64 steps",
    8: "20.90 / 30.73 / 43.11 / 51.50, 64 steps",
}
MASKED = {
    "greedy": Masked("greedy", "1/4", 0.0, "11.25 / 11.86 / 12.75 / 14.00, 64 steps"),
    "warm": Masked("T = 0.4", "1/4", 0.4, "7.20 / 9.93 / 14.13 / 17.50, 64 steps"),
    "hot": Masked("T = 0.8", "1/4", 0.8, "6.70 / 10.19 / 15.55 / 19.50, 64 steps"),
    "greedy full": Masked("greedy", None, 0.0, "37.30 / 38.46 / 39.81 / 41.00, 256 steps"),
    "hot full": Masked("T = 0.8", None, 0.8, "1.20 / 1.52 / 1.99 / 2.50, 256 steps"),
}


def methods(inputs: Inputs) -> list[Method]:
    """The flow with its expected and its sampled action, then LLaDA's own sampling."""
    flow = {"budget": "1/4", "policy": inputs.learned}
    rows = [
        Method(
            "expected" if tau is None else f"sampled {tau}",
            "flow, deterministic" if tau is None else f"flow, sampled policy τ = {tau}",
            "flow",
            flow if tau is None else {**flow, "policy_temperature": tau},
            samples=1 if tau is None else DRAWS,
            paper={f"{LLADA_MBPP} (n = 200)": quoted},
        )
        for tau, quoted in FLOW_PAPER.items()
    ]
    for key, row in MASKED.items():
        rows.append(
            Method(
                key,
                f"mask prediction, {row.label}, budget {row.budget or 'full'}",
                "mask",
                {"budget": row.budget, "temperature": row.temperature},
                "pretrained",
                samples=DRAWS if row.temperature else 1,
                paper={f"{LLADA_MBPP} (n = 200)": row.paper},
            )
        )
    return rows


def pass_at(found: Summary, k: int) -> float:
    """pass@k; that of a single deterministic draw is the accuracy, whatever k is."""
    return found.pass_at[k] if found.pass_at.keys() != {1} else found.accuracy


def cell(found: Summary) -> str:
    """All k, and the passes."""
    shares = " / ".join(f"{100 * pass_at(found, k):.1f}" for k in KS)
    return f"{shares}, {found.passes_mean:.1f} passes"


def _higher(one: tuple[str, int], other: tuple[str, int], holds: str, fails: str) -> Claim[Column]:
    """pass@k of one row above that of another."""

    def both(found: Column) -> tuple[float, float]:
        a, b = (pass_at(found[key], k) for key, k in (one, other))
        return a, b

    return Claim(
        lambda found: both(found)[0] > both(found)[1],
        holds,
        fails,
        lambda found: "{:.1%} against {:.1%}".format(*both(found)),
    )


CLAIMS = (
    _higher(
        ("expected", 1),
        ("sampled 1", 1),
        "sampling the policy costs some pass@1",
        "sampling the policy does not cost pass@1",
    ),
    _higher(
        ("sampled 1", 10),
        ("expected", 10),
        "sampling the policy gains pass@10",
        "sampling the policy does not gain pass@10",
    ),
    _higher(
        ("sampled 1", 1),
        ("sampled 8", 1),
        "heating the policy to τ = 8 costs further pass@1",
        "heating the policy to τ = 8 does not cost further pass@1",
    ),
    _higher(
        ("sampled 1", 10),
        ("greedy full", 10),
        "pass@10 of the sampled policy at 1/4 exceeds greedy mask prediction's at full budget",
        "pass@10 of the sampled policy at 1/4 does not exceed greedy mask prediction's at full"
        " budget",
    ),
    _higher(
        ("greedy full", 1),
        ("hot full", 1),
        "sampling tokens at T = 0.8 costs mask prediction pass@1 at full budget",
        "sampling tokens at T = 0.8 does not cost mask prediction pass@1 at full budget",
    ),
)


def make(bench: Bench, inputs: Inputs) -> Report:
    """The table on the first pair of models."""
    layout = Layout(TITLE, methods(inputs), CLAIMS, cell, NOTES)
    return decoding_report(layout, bench, inputs, inputs.pairs()[:1])


TABLE = Table("passk", TITLE, ("aligned", "policy"), make)

"""The figure of alignment losses, from an alignment run's log."""

from pathlib import Path
from statistics import fmean
from typing import Any

from xpredflow.errors import InputError
from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import Claim
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.report import Probe, Report
from xpredflow.training.align.progress import LIMIT
from xpredflow.training.common.plots import plot_alignment
from xpredflow.training.common.runs import read_log

TITLE = "Losses during alignment"
CURVES = {
    "mse_masked": "MSE at masked positions",
    "mse_unmasked": "MSE at unmasked positions",
    "ce_masked": "CE at masked positions",
    "reference_ce_masked": "CE of the model before alignment",
}
PAPER = {
    "mse_unmasked": "close to zero after 100 steps (curve only, LLaDA-8B-Instruct)",
    "ce_masked": "close to the reference throughout (curve only, LLaDA-8B-Instruct)",
}
SMALL = 0.1  # "close to zero": a tenth of where it began
Ends = dict[str, tuple[float, float] | None]  # a curve's mean at the beginning and at the end


def ends(lines: list[dict[str, Any]]) -> Ends:
    """Means over the first and the last tenth of the steps that have a value."""
    found: Ends = {}
    for name in CURVES:
        values = [line[name] for line in lines if line[name] is not None]
        window = max(1, len(values) // 10)
        found[name] = (fmean(values[:window]), fmean(values[-window:])) if values else None
    return found


def _shrunk(found: Ends) -> float:
    """What is left of the loss at unmasked positions."""
    curve = found["mse_unmasked"]
    return curve[1] / curve[0] if curve and curve[0] else 1.0


def _off(found: Ends) -> float:
    """How far the cross-entropy at masked positions is off the reference's in the end."""
    now, reference = found["ce_masked"], found["reference_ce_masked"]
    return now[1] / reference[1] - 1 if now and reference and reference[1] else 0.0


CLAIMS = (
    Claim[Ends](
        lambda found: _shrunk(found) <= SMALL,
        "the loss at unmasked positions falls to a tenth or less",
        "the loss at unmasked positions does not fall to a tenth",
        lambda found: f"{_shrunk(found):.1%} of its start",
    ),
    Claim[Ends](
        lambda found: abs(_off(found)) <= LIMIT,
        f"cross-entropy at masked positions stays within {LIMIT:.0%} of the reference's",
        f"cross-entropy at masked positions does not stay within {LIMIT:.0%} of the reference's",
        lambda found: f"{_off(found):+.1%} in the end",
    ),
)


def make(bench: Bench, inputs: Inputs) -> Report:
    """The figure of the run that was given."""
    assert inputs.align_run is not None, "the table states that it needs the run"
    log = inputs.align_run / "log.jsonl"
    lines = [line for line in read_log(log) if "mse_masked" in line]
    if not lines:
        raise InputError(f"{str(log)!r} has no steps of an alignment: give another --align-run")
    return arranged(str(inputs.align_run), lines)


def arranged(run: str, lines: list[dict[str, Any]]) -> Report:
    """The beginning and the end of each curve; a claim without its curves is not judged."""
    found = ends(lines)
    known = {name: curve for name, curve in found.items() if curve is not None}
    needs = ({"mse_unmasked"}, {"ce_masked", "reference_ce_masked"})
    return Report(
        title=TITLE,
        header=["", "first tenth of the steps", "last tenth", "paper"],
        rows=[
            [label, *_cells(found[name]), PAPER.get(name, "–")] for name, label in CURVES.items()
        ],
        data={"run": run, "steps": len(lines), "ours": known, "paper": PAPER},
        outcomes=[
            claim.judge(run, found)
            for claim, names in zip(CLAIMS, needs, strict=True)
            if names <= known.keys()
        ],
        notes=[f"Ours: {len(lines)} steps of {run}."],
        draw=lambda picture: plot_alignment(Path(run) / "log.jsonl", picture),
    )


def _cells(curve: tuple[float, float] | None) -> list[str]:
    return ["–", "–"] if curve is None else [f"{value:.4g}" for value in curve]


TABLE = Probe("alignment", TITLE, ("align_run",), make)

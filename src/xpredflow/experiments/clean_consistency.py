"""Whether clean tokens are predicted again, before and after alignment (the paper's Sec. 3.2)."""

from dataclasses import asdict

from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import Claim
from xpredflow.experiments.clean_answers import clean_answers
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.report import Probe, Report
from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.align.consistency import Consistency, consistency

TITLE = "Consistency at clean positions before and after alignment"
WHEN = ("before", "after")
NOT_MEASURED = "–"
PAPER = {"before": ("96.5", "24")}
BeforeAfter = dict[str, Consistency]

CLAIMS = (
    Claim[BeforeAfter](
        lambda f: f["after"].distance < f["before"].distance,
        "alignment brings the readout closer to the clean embedding",
        "alignment does not bring the readout closer to the clean embedding",
        lambda f: f"{f['before'].distance:.1%} away before, {f['after'].distance:.1%} after",
    ),
    Claim[BeforeAfter](
        lambda f: f["before"].distance > 1 - f["before"].agreement,
        "before alignment the readout is further off than the share of wrong tokens",
        "before alignment the readout is not further off than the share of wrong tokens",
        lambda f: f"{f['before'].distance:.1%} against {1 - f['before'].agreement:.1%}",
    ),
)


def make(bench: Bench, inputs: Inputs) -> Report:
    """The probe on the first pair of models, on the same answers."""
    pair = inputs.pairs()[0]
    found: dict[str, BeforeAfter] = {}
    for when, source in zip(WHEN, pair, strict=True):
        assert source is not None, "the table states that it needs the aligned model"
        model = bench.model(source)
        assert isinstance(model, MaskedDiffusionModel)
        for name, answers in clean_answers(bench, inputs, model).items():
            measured = consistency(model, answers)
            found.setdefault(f"{pair.pretrained}, {name}", {})[when] = measured
            bench.watch.say(f"{source}, {name}: {measured.agreement:.1%} of clean tokens kept")
    return arranged(found)


def arranged(found: dict[str, BeforeAfter]) -> Report:
    """A row for each model and time, beside the paper's."""
    ours = [[where, when, *_cells(both[when])] for where, both in found.items() for when in WHEN]
    paper = [
        ["paper: LLaDA-8B, MBPP", when, *PAPER.get(when, (NOT_MEASURED,) * 2), *(NOT_MEASURED,) * 2]
        for when in WHEN
    ]
    return Report(
        title=TITLE,
        header=[
            "",
            "alignment",
            "tokens predicted again, %",
            "distance of the readout, %",
            "tokens, text only",
            "distance, text only",
        ],
        rows=ours + paper,
        data={
            "ours": {w: {n: asdict(c) for n, c in both.items()} for w, both in found.items()},
            "paper": {"LLaDA-8B, MBPP": {"before": {"agreement": 0.965, "distance": 0.24}}},
        },
        outcomes=[c.judge(where, both) for where, both in found.items() for c in CLAIMS],
        notes=[
            "Whole answers with nothing masked; the distance is relative, in L2 norm. The text ends"
            " before the first end token.",
            "The paper measures 4763 positions of 64 MBPP problems before alignment, and gives no"
            " figure after it.",
        ],
    )


def _cells(found: Consistency) -> list[str]:
    shares = (found.agreement, found.distance, found.text_agreement, found.text_distance)
    return [NOT_MEASURED if share is None else f"{100 * share:.1f}" for share in shares]


TABLE = Probe("consistency", TITLE, ("aligned", "answers"), make)

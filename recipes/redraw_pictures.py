"""Draw the pictures of docs/results anew from the figures that lie beside them.

Nothing is measured: compare.json, chosen.json and anchor.json hold what their pictures show. The
picture of an alignment needs its run's log, and is drawn by `xpredflow reproduce alignment`.

    python recipes/redraw_pictures.py [DIRECTORY]
"""

import json
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from xpredflow.evaluation import Summary
from xpredflow.experiments.anchor import PAPER, Recovery
from xpredflow.experiments.bench import Measured, Trial
from xpredflow.experiments.choice import Candidate, Chosen
from xpredflow.experiments.chosen_plot import draw_chosen
from xpredflow.experiments.contenders import Variant
from xpredflow.experiments.parallelism import Point
from xpredflow.experiments.plots import draw_decoders, draw_recovery

RESULTS = Path(__file__).parent.parent / "docs/results"


def measured(entry: dict[str, Any]) -> Measured:
    """What one setting reached; older reports say less of it."""
    known = {field.name for field in fields(Summary)}
    summary = Summary(**{key: value for key, value in entry["summary"].items() if key in known})
    return Measured(summary, entry.get("budget", ""), 0, _rules(entry))


def _rules(entry: dict[str, Any]) -> dict[str, Any]:
    """The rules in force; a report from before they were named has the decoder's name alone."""
    rules = entry.get("rules") or {"decoder": entry["summary"]["decoder"]}
    if "commit_above" in entry["decoder"] and rules["decoder"] == "flow":
        rules = {**rules, "commit_threshold": 1.0}  # the extension's former name
    return rules


def compare(report: dict[str, Any], picture: Path) -> bool:
    """Accuracy over passes of every decoder."""
    points = [
        Point(one["task"], one["decoder"], one["setting"], one["share"], measured(one))
        for one in report["points"]
    ]
    source = report["title"].removeprefix("Decoders on ").partition(":")[0]
    return draw_decoders(points, report["areas"], picture, source)


def chosen(report: dict[str, Any], picture: Path) -> bool:
    """The settings that were chosen, with intervals."""
    shown = []
    for one in report["chosen"]:
        if one["setting"] is not None:
            variant = Variant(one["setting"], Trial(one["decoder"], {"setting": one["setting"]}))
            found = measured(one)
            candidate = Candidate(one["task"], one["decoder"], one["weights"], variant, found)
            shown.append((Chosen(one["task"], one["target"], one["decoder"], candidate), found))
    return draw_chosen(shown, picture, report["title"])


def anchor(report: dict[str, Any], picture: Path) -> bool:
    """Recovery over displacement, ours beside the paper's."""
    shown = {name: Recovery(**found) for name, found in report["ours"].items()}
    return draw_recovery({**shown, "paper: LLaDA-8B, MBPP": PAPER}, report["alphas"], picture)


DRAW: dict[str, Callable[[dict[str, Any], Path], bool]] = {
    "compare": compare,
    "chosen": chosen,
    "anchor": anchor,
}


def main(directory: Path) -> None:
    """Every picture below a directory whose figures are there."""
    for path in sorted(directory.rglob("*.json")):
        draw = DRAW.get(path.stem)
        if draw is not None and draw(json.loads(path.read_text()), path.with_suffix(".png")):
            print(path.with_suffix(".png"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)

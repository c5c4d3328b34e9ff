"""Whether flow with a learned policy leads the other decoders of a comparison.

    python benchmarks/flow_leads.py docs/results/compare.json

Reads what `xpredflow compare` wrote. For each task: is the best of all settings of flow:learned:...
on or above every other decoder's curve, from 1/20 to 1/4 of the full budget? Flows with other
policies count on neither side. That is this project's own aim, which is why no report states it.
The exit code is 1 where the flow does not lead.
"""

import json
import sys
from pathlib import Path
from typing import Any

LEAST = 1 / 20  # what is faster counts from here on
MOST = 1 / 4  # the largest share of the full budget at which the flow is meant to lead
SPAN = f"every other decoder's curve from {LEAST:g} to {MOST:g} of the full budget"
Point = dict[str, Any]


def main() -> int:
    points = json.loads(Path(sys.argv[1]).read_text())["points"]
    verdicts = leads(points)
    for sentence in verdicts:
        print(sentence)
    return 0 if all(verdicts.values()) else 1


def leads(points: list[Point]) -> dict[str, bool]:
    """A sentence per task, and whether the flow leads there; none where nothing is to compare."""
    verdicts: dict[str, bool] = {}
    for task in dict.fromkeys(point["task"] for point in points):
        own = [point for point in points if point["task"] == task]
        flow = [point for point in own if point["decoder"].startswith("flow:learned:")]
        others = [
            point
            for point in own
            if not point["decoder"].startswith("flow") and point["share"] <= MOST
        ]
        if not flow or not others:
            continue
        above = [point for point in others if accuracy(point) > reached(flow, point["share"])]
        who = f"On {task}, flow with a learned policy, all its settings together,"
        if not above:
            verdicts[f"{who} is on or above {SPAN}."] = True
            continue
        found = "; ".join(
            f"{point['decoder']}, {point['setting']}: {accuracy(point):.1%} in"
            f" {passes(point):.1f} passes against {reached(flow, point['share']):.1%}"
            for point in above
        )
        verdicts[f"{who} is not above {SPAN} ({found})."] = False
    return verdicts


def accuracy(point: Point) -> float:
    return point["summary"]["accuracy"]


def passes(point: Point) -> float:
    return point["summary"]["passes_mean"]


def reached(points: list[Point], share: float) -> float:
    """The best accuracy that was had for at most this share; 0 if none was."""
    within = [accuracy(point) for point in points if point["share"] <= max(share, LEAST)]
    return max(within, default=0.0)


if __name__ == "__main__":
    sys.exit(main())

"""Whether flow with a learned policy leads the other decoders of a comparison.

    python benchmarks/flow_leads.py docs/results/compare.json
    python benchmarks/flow_leads.py runs/compare/chosen.json

Reads what `xpredflow compare` wrote. For each task: is the best of all settings of flow:learned:...
on or above every other decoder's curve, from 1/20 to 1/4 of the full budget? Flows with other
policies count on neither side. That is this project's own aim, which is why no report states it.
The exit code is 1 where the flow does not lead.

Of a comparison with --choose whose first decoder is a flow: is that flow ahead of, level with or
behind each peer within each number of passes? Level is whatever McNemar's test, corrected, does not
tell apart at 5 %. The exit code is 1 where it is behind a peer.
"""

import json
import sys
from pathlib import Path
from typing import Any

LEAST = 1 / 20  # what is faster counts from here on
MOST = 1 / 4  # the largest share of the full budget at which the flow is meant to lead
SPAN = f"every other decoder's curve from {LEAST:g} to {MOST:g} of the full budget"
SIGNIFICANT = 0.05
Point = dict[str, Any]


def main() -> int:
    found = json.loads(Path(sys.argv[1]).read_text())
    verdicts = stands(found) if "chosen" in found else leads(found["points"])
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


def stands(found: dict[str, Any]) -> dict[str, bool]:
    """A sentence per task, number of passes and peer, and whether the flow is not behind there."""
    first, verdicts = found["reference"], {}
    if not first.startswith("flow"):
        sys.exit(f"the first decoder of this comparison is {first}: give the flow first")
    shown = [one for one in found["chosen"] if one["setting"] is not None]
    own = {(one["task"], one["target"]): one for one in shown if one["decoder"] == first}
    for peer in shown:
        flow = own.get((peer["task"], peer["target"]))
        if flow is None or peer["decoder"].startswith("flow"):
            continue
        test = peer["against"]
        told_apart = test["corrected"] < SIGNIFICANT
        behind = told_apart and test["only_this"] > test["only_reference"]
        where = "behind" if behind else "ahead of" if told_apart else "level with"
        sentence = (
            f"On {peer['task']}, within {peer['target']} passes, {first} is {where}"
            f" {peer['decoder']} on {peer['weights']}: {accuracy(flow):.1%} in {passes(flow):.1f}"
            f" against {accuracy(peer):.1%} in {passes(peer):.1f}, p = {test['corrected']:.2g}."
        )
        verdicts[sentence] = not behind
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

"""The script that says whether the flow leads, on made-up comparisons."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "flow_leads.py"


def point(decoder: str, setting: str, share: float, accuracy: float, passes: float) -> Any:
    summary = {"accuracy": accuracy, "passes_mean": passes}
    return {
        **{"task": "minimath", "decoder": decoder, "setting": setting},
        **{"share": share, "summary": summary},
    }


LEARNED = [
    point("flow:learned:a+tau=0.7,0.9", "0.7", 0.06, 0.80, 4),
    point("flow:learned:a+tau=0.7,0.9", "0.9", 0.12, 0.90, 8),
]
BEATEN = [
    point("eb:0.1,0.5", "0.1", 0.12, 0.90, 8),  # equal is on the curve
    point("eb:0.1,0.5", "0.5", 0.08, 0.80, 5),
    point("mask", "", 1.0, 0.99, 64),  # beyond the range
    point("flow:power:8", "", 0.07, 0.95, 4),
]
WHO = "On minimath, flow with a learned policy, all its settings together,"
SPAN = "every other decoder's curve from 0.05 to 0.25 of the full budget"


def judged(points: list[Any], tmp_path: Path) -> tuple[int, str]:
    return said({"points": points}, tmp_path)


def said(found: dict[str, Any], tmp_path: Path) -> tuple[int, str]:
    file = tmp_path / "compare.json"
    file.write_text(json.dumps(found))
    done = subprocess.run(
        [sys.executable, SCRIPT, file], check=False, capture_output=True, text=True
    )
    return done.returncode, done.stdout


def test_the_flow_leads_where_no_other_point_is_above_its_curve(tmp_path: Path) -> None:
    assert judged(LEARNED + BEATEN, tmp_path) == (0, f"{WHO} is on or above {SPAN}.\n")


def test_every_point_that_is_above_is_named(tmp_path: Path) -> None:
    # faster than the range: what it solves counts from 0.05 on, where the flow has nothing yet
    fast = point("credit:0.7", "0.7", 0.03, 0.10, 2)
    better = point("eb:0.1,0.5", "0.2", 0.1, 0.81, 6)
    assert judged([*LEARNED, *BEATEN, fast, better], tmp_path) == (
        1,
        f"{WHO} is not above {SPAN} (credit:0.7, 0.7: 10.0% in 2.0 passes against 0.0%;"
        " eb:0.1,0.5, 0.2: 81.0% in 6.0 passes against 80.0%).\n",
    )


def chosen(decoder: str, right: float, only_this: int, p: float, target: int = 4) -> Any:
    against = {"only_this": only_this, "only_reference": 5, "p": p, "corrected": p}
    return {
        **{"task": "minimath", "target": target, "decoder": decoder, "setting": "0.9"},
        **{"weights": "tiny", "summary": {"accuracy": right, "passes_mean": 3.9}},
        "against": None if decoder == "flow" else against,
    }


def test_a_fair_comparison_is_told_peer_by_peer(tmp_path: Path) -> None:
    others = [
        chosen("eb", 0.94, 4, 0.6),
        chosen("mask", 0.5, 0, 0.001),
        chosen("flow+x=1", 1, 9, 0),
    ]
    slow = {"task": "minimath", "target": 2, "decoder": "eb", "setting": None}
    found = {"reference": "flow", "chosen": [chosen("flow", 0.95, 0, 1), *others, slow]}
    code, told = said(found, tmp_path)
    assert code == 0
    assert told.splitlines() == [
        "On minimath, within 4 passes, flow is level with eb on tiny: 95.0% in 3.9 against 94.0% in"
        " 3.9, p = 0.6.",
        "On minimath, within 4 passes, flow is ahead of mask on tiny: 95.0% in 3.9 against 50.0% in"
        " 3.9, p = 0.001.",
    ]
    found["chosen"].append(chosen("wino", 0.99, 20, 0.01))
    code, told = said(found, tmp_path)
    assert code == 1
    assert "flow is behind wino" in told
    assert said({**found, "reference": "eb"}, tmp_path)[0] == 1


def test_nothing_is_said_where_nothing_can_be_compared(tmp_path: Path) -> None:
    assert judged(BEATEN, tmp_path) == (0, "")
    assert judged(LEARNED, tmp_path) == (0, "")

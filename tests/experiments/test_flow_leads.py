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
    file = tmp_path / "compare.json"
    file.write_text(json.dumps({"points": points}))
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


def test_nothing_is_said_where_nothing_can_be_compared(tmp_path: Path) -> None:
    assert judged(BEATEN, tmp_path) == (0, "")
    assert judged(LEARNED, tmp_path) == (0, "")

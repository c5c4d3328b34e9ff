"""The README: its example runs as printed, its tables are complete and hold what was measured."""

import json
import re
from pathlib import Path

from xpredflow.decoders import DECODERS, POLICIES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_runs(capsys) -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_every_decoder_and_policy_is_listed() -> None:
    section = README.split("## Decoders")[1].split("## Models")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE) == list(DECODERS)
    for policy in POLICIES:
        assert re.search(rf"`{policy}\b", README), policy


def test_the_results_are_those_of_the_report() -> None:
    """`xpredflow reproduce main --out docs/results` wrote them; paper's columns are left there."""
    report = json.loads((ROOT / "docs/results/main.json").read_text())
    found = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", README, re.MULTILINE)
    rows = {label: cells for label, *cells in found}
    for row in report["rows"]:
        ours = row["ours"].values()
        cells = [f"{100 * one['accuracy']:.1f} in {one['passes_mean']:.1f}" for one in ours]
        assert rows[row["label"]] == cells, row["label"]

"""The README: its example runs as printed, its tables are complete and hold what was measured."""

import json
import re
from pathlib import Path

import pytest

from xpredflow.decoders import DECODERS, POLICIES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


EXAMPLES = [
    pytest.param(example, id=f"{page.name}-{number}")
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))
    for number, example in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    )
]
# Where the decoders may be listed in full: the front page, or a page that it links to.
PAGES = [README, *(page.read_text() for page in sorted(ROOT.glob("docs/*.md")))]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_runs(example: str, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_there_is_an_example() -> None:
    assert EXAMPLES


def test_every_decoder_and_policy_is_listed_in_one_table() -> None:
    tables = [re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE) for page in PAGES]
    assert any(set(DECODERS) <= set(table) for table in tables)
    for policy in POLICIES:
        assert any(re.search(rf"`{policy}\b", page) for page in PAGES), policy


def test_links_lead_somewhere() -> None:
    for text, target in re.findall(r"\[([^\]]+)\]\(([^)#]+)", README):
        path = target.removeprefix("https://github.com/xpredflow/xpredflow/")
        path = re.sub(r"^(blob|tree|raw)/main/", "", path)
        if not path.startswith("http"):
            assert (ROOT / path).exists(), f"[{text}]({target})"


def test_the_results_are_those_of_the_report() -> None:
    """`xpredflow reproduce main --out docs/results` wrote them; paper's columns are left there."""
    report = json.loads((ROOT / "docs/results/main.json").read_text())
    found = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", README, re.MULTILINE)
    rows = {label: cells for label, *cells in found}
    for row in report["rows"]:
        ours = row["ours"].values()
        cells = [f"{100 * one['accuracy']:.1f} in {one['passes_mean']:.1f}" for one in ours]
        assert rows[row["label"]] == cells, row["label"]

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
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")))
    for number, example in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    )
]
# Where the decoders may be listed in full: the front page, or a page that it links to.
PAGES = [README, *(page.read_text() for page in sorted(ROOT.glob("docs/*.md")))]


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_runs(example: str, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"prompt": "What is 2 + 3?", "answer": 5, "grader": "number"}
    Path("mine.jsonl").write_text(json.dumps(row) + "\n")
    exec(compile(example, "example", "exec"), {})
    assert "print" not in example or capsys.readouterr().out.strip()


def test_there_is_an_example() -> None:
    assert EXAMPLES


def test_every_decoder_and_policy_is_listed_in_one_table() -> None:
    tables = [re.findall(r"^\| `([\w.]+)` \|", page, flags=re.MULTILINE) for page in PAGES]
    ours = {n for n, e in DECODERS.loaded().items() if e.item.__module__.startswith("xpredflow.")}
    assert any(ours <= set(table) for table in tables)
    for policy in POLICIES:
        assert any(re.search(rf"`{policy}\b", page) for page in PAGES), policy


def test_links_lead_somewhere() -> None:
    for text, target in re.findall(r"\[([^\]]+)\]\(([^)#]+)", README):
        path = target.removeprefix("https://github.com/xpredflow/xpredflow/")
        path = re.sub(r"^(blob|tree|raw)/main/", "", path)
        if not path.startswith("http"):
            assert (ROOT / path).exists(), f"[{text}]({target})"


def test_the_results_are_those_of_the_report() -> None:
    """The command that stands under the table wrote them; a star is for the original weights."""
    report = json.loads((ROOT / "docs/results/headline/chosen.json").read_text())
    assert report["command"] in README
    cells: dict[str, list[str]] = {}
    for one in report["chosen"]:
        shown = "–"
        if one["setting"] is not None:
            star = "" if one["weights"] == "tiny-aligned" else r"\*"
            found = one["summary"]
            shown = f"{100 * found['accuracy']:.1f} in {found['passes_mean']:.1f}{star}"
        cells.setdefault(one["decoder"], []).append(shown)
    cell = r"([\d.]+ in [\d.]+(?:\\\*)?|–)"
    columns = r" \| ".join([cell] * len(next(iter(cells.values()))))
    table = re.findall(rf"^\| .+? \| `(.+?)` \| {columns} \|$", README, re.MULTILINE)
    assert {spec: list(shown) for spec, *shown in table} == cells

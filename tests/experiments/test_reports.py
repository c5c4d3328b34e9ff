"""What is written: Markdown, JSON, the index; tables arranged from made-up results."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_up import measured

from xpredflow import InputError
from xpredflow.experiments import alignment_losses, anchor, clean_consistency
from xpredflow.experiments.bench import Bench, Plan
from xpredflow.experiments.claims import Outcome
from xpredflow.experiments.decoding_table import column_name
from xpredflow.experiments.inputs import Inputs, Pair
from xpredflow.experiments.paper_tables import MAIN
from xpredflow.experiments.report import NO_PICTURE, Report, grid, markdown, write
from xpredflow.experiments.tables import choose, write_index
from xpredflow.registry import TABLES
from xpredflow.tasks import make_task
from xpredflow.training.align.consistency import Consistency

REPORT = Report(
    title="A table",
    header=["", "tiny"],
    rows=[["a|b", "1.0"]],
    data={"rows": [1]},
    outcomes=[Outcome("tiny", True, "up (2)"), Outcome("tiny", False, "not down (1)")],
    notes=["A note."],
    rules=["flow (learned:a): tau=0.9"],
)
PAGE = r"""# A table

Made with `xpredflow reproduce x`.

|      | tiny |
|------|------|
| a\|b | 1.0  |

- A note.

## Rules in force

- flow (learned:a): tau=0.9

## The paper's claims on our models

- tiny. Holds: up (2).
- tiny. **Does not hold**: not down (1).
"""


def test_a_page_is_exactly_this() -> None:
    assert markdown(REPORT, "xpredflow reproduce x") == PAGE
    assert "![A table](x.png)" in markdown(REPORT, "c", "x.png")
    assert f"- {NO_PICTURE}" in markdown(REPORT, "c", "")
    assert grid(["wide", "b"], [["1", "2"]]) == "| wide | b   |\n|------|-----|\n| 1    | 2   |"


def test_files_of_a_report(tmp_path: Path) -> None:
    def draw(picture: Path) -> bool:
        picture.write_text("picture")
        return True

    text = write(replace(REPORT, draw=draw), "x", tmp_path / "new", "command")
    assert {f.name for f in (tmp_path / "new").iterdir()} == {"x.md", "x.json", "x.png"}
    assert (tmp_path / "new/x.md").read_text() == text
    written = json.loads((tmp_path / "new/x.json").read_text())
    assert (written["table"], written["command"], written["rows"]) == ("x", "command", [1])
    assert written["claims"][1] == {"where": "tiny", "holds": False, "sentence": "not down (1)"}


def test_the_main_table_quotes_both_of_the_papers_figures() -> None:
    column = {method.key: measured(45, passes=14.25) for method in MAIN.methods}
    column["flow"] = measured(45, passes=14.25, decoder="flow", policy="learned:p", tau=0.9)
    report = MAIN.arranged({"tiny, minicode": column, "tiny, minimath": column}, ["First."])
    assert report.header[:3] == ["", "tiny, minicode", "tiny, minimath"]
    assert report.header[3] == "paper: LLaDA-8B-Instruct, HumanEval"
    papers, ours = [row for row in report.rows if row[0].startswith("x-prediction flow")]
    assert papers[0] == "x-prediction flow, the paper's rules, budget ≤ 1/4"
    assert papers[1] == "45.0 [35.6, 54.8], 14.2 of 16 passes"
    assert papers[3] == "45.12, 73/128 steps (appendix: table 72.9, text 81.9)"
    assert papers[4] == "33.00 (appendix: 32.60), 35/64 steps"
    assert ours[0] == "x-prediction flow, with our extensions, budget ≤ 1/4"
    assert ours[3:] == ["–"] * 5  # the paper knows nothing of them
    assert (report.notes[0], report.notes[2]) == ("First.", MAIN.notes[0])
    assert len(report.outcomes) == 2 * 8
    assert report.rules == ["flow (learned:p): tau=0.9"]
    entry = report.data["rows"][3]["ours"]["tiny, minimath"]
    assert (entry["accuracy"], entry["budget"]) == (0.45, "1/4 (16 passes)")
    assert entry["rules"] == {"decoder": "flow", "policy": "learned:p", "tau": 0.9}


def test_the_papers_rules_and_ours_stand_in_every_table_with_a_flow() -> None:
    for name in ("main", "ablations", "policy", "softmask", "passk", "topk"):
        labels = " ".join(method.label for method in TABLES[name].methods)
        assert "the paper's rules" in labels
        assert "with our extensions" in labels


def test_a_table_states_its_time_and_may_bound_its_problems() -> None:
    one = measured(45)
    timed = replace(one, summary=replace(one.summary, seconds_mean=0.6))
    report = MAIN.arranged({"tiny": {method.key: timed for method in MAIN.methods}}, [])
    count = len(MAIN.methods)
    assert report.notes[-1] == f"Decoding and grading these rows took {count}.0 minutes."
    assert report.data["seconds"] == pytest.approx(60 * count)
    bench = Bench(Plan((make_task("minimath"),), limit=300))
    with bench.limited(TABLES["passk"].most):
        assert bench.plan.problems(bench.plan.tasks[0]) == 200
    with bench.limited(MAIN.most):
        assert bench.plan.limit == 300


def test_two_alignments_of_one_model_are_two_columns() -> None:
    pairs = [Pair("tiny", "tiny-aligned"), Pair("tiny", "runs/paper/model"), Pair("moe", "b")]
    assert [column_name(pair, pairs) for pair in pairs] == [
        *("tiny (tiny-aligned)", "tiny (runs/paper/model)", "moe")
    ]


def test_the_anchor_and_consistency_tables_stand_beside_the_papers() -> None:
    report = anchor.arranged({"tiny, minimath": anchor.PAPER})
    assert len(report.rows) == 2 * 6
    assert report.rows[0][1:5] == ["accuracy", "mask", "0.964", "0.967"]
    assert report.rows[-1][0] == "paper: LLaDA-8B, MBPP (n = 2347)"
    assert report.rows[-1][1:3] == ["cross-entropy", "token"]
    assert report.rows[-1][3:] == ["0.232", "0.222", "0.203", "1.598", "6.067"]
    both = {"before": Consistency(0.9, 0.3, None, None), "after": Consistency(1.0, 0.1, 0.8, 0.2)}
    rows = clean_consistency.arranged({"tiny, minimath": both}).rows
    assert rows[0] == ["tiny, minimath", "before", "90.0", "30.0", "–", "–"]
    assert rows[1] == ["tiny, minimath", "after", "100.0", "10.0", "80.0", "20.0"]
    assert rows[2][2:] == ["96.5", "24", "–", "–"]
    assert rows[3][2:] == ["–"] * 4


def test_alignment_curves_are_read_at_both_ends() -> None:
    lines = [
        {
            "step": step,
            "mse_masked": 1.0,
            "mse_unmasked": 20.0 - step,
            "ce_masked": 0.5,
            "reference_ce_masked": None,
        }
        for step in range(20)
    ]
    assert alignment_losses.ends(lines)["mse_unmasked"] == (19.5, 1.5)
    report = alignment_losses.arranged("runs/a", lines)
    assert report.rows[1][1:3] == ["19.5", "1.5"]
    assert report.rows[3][1:3] == ["–", "–"]
    assert [outcome.holds for outcome in report.outcomes] == [True]  # the other has no reference


def test_all_leaves_out_what_lacks_an_input() -> None:
    chosen = choose(["all"], Inputs(("m",), policy="p"))
    assert [table.name for table in chosen.tables] == ["anchor"]
    assert set(chosen.left_out) == set(TABLES) - {"anchor"}
    assert chosen.left_out["main"].startswith("needs --aligned MODEL")
    assert chosen.left_out["alignment"].startswith("needs --align-run DIR")
    everything = Inputs((), ("a",), "p", "s", Path("r"))
    assert choose(["all"], everything) == ([TABLES[name] for name in TABLES], {})
    assert choose(["topk", "main", "topk"], everything).tables == [TABLES["topk"], TABLES["main"]]


def test_a_named_table_insists_on_its_inputs() -> None:
    with pytest.raises(InputError, match=r"table 'main' needs --policy FILE"):
        choose(["main"], Inputs(aligned=("a",)))
    with pytest.raises(InputError, match=r"table 'softmask' needs --softmask DIR"):
        choose(["softmask"], Inputs(aligned=("a",), policy="p"))
    with pytest.raises(InputError, match=r"table 'anchor' needs --answers FILE"):
        choose(["anchor"], Inputs(tasks_answer=False))
    assert choose(["anchor"], Inputs(answers=Path("a"), tasks_answer=False)).left_out == {}
    with pytest.raises(InputError, match="did you mean 'policy'"):
        choose(["polcy"], Inputs())


def test_models_and_aligned_ones_are_paired_in_order() -> None:
    assert Inputs(("m", "tiny")).pairs() == [Pair("m", None), Pair("tiny", "tiny-aligned")]
    assert Inputs(aligned=("a", "b")).pairs() == [Pair("tiny", "a"), Pair("tiny-moe", "b")]
    assert Inputs(("m",), ("a",)).pairs() == [Pair("m", "a")]
    with pytest.raises(InputError, match="--aligned was given 1 times for 2 models"):
        Inputs(("m", "n"), ("a",)).pairs()


def test_embedded_models_bring_what_belongs_to_them() -> None:
    both = [Pair("tiny", "tiny-aligned"), Pair("tiny-moe", "tiny-moe-aligned")]
    assert (Inputs().pairs(), Inputs().learned) == (both, "learned:tiny")
    assert Inputs(("tiny-moe",)).pairs() == both[1:]
    assert Inputs(policy="p").learned == "learned:p"
    assert Inputs(("m",), ("a",)).chosen_policy is None
    left_out = choose(["all"], Inputs()).left_out
    assert set(left_out) == {"softmask", "alignment"}


def test_what_can_be_no_model_is_refused_before_anything_is_decoded(tmp_path: Path) -> None:
    Inputs(("tiny", str(tmp_path)), ("owner/name", "tiny-moe")).check()
    for source in ("tinny", "runs/aligned/modle", "./none", str(tmp_path / "none")):
        with pytest.raises(InputError, match=f"--aligned '{source}': expected tiny or "):
            Inputs(aligned=(source,)).check()


def test_the_index(tmp_path: Path) -> None:
    write(REPORT, "topk", tmp_path, "command")
    write_index(tmp_path, {"main": "needs --policy FILE", "topk": "is there from before"})
    assert (tmp_path / "README.md").read_text() == (
        "# Results\n\n- [A table](topk.md), 1 of 2 claims hold; `command`\n\n"
        "## Left out\n\n"
        "- Main table: accuracy in % and average passes (`main`) needs --policy FILE.\n"
    )

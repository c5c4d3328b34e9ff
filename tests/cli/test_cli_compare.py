"""`xpredflow compare` as a user calls it, on the toy model; and the same call in Python."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from xpredflow.cli.progress import BenchBar
from xpredflow.experiments.compare import compare

QUICK = ["-t", "minimath", "--limit", "2", "-o", "gen_length=8"]
DECODERS = ["-d", "flow:confidence", "-d", "mask+temperature=0.5", "--sweep", "threshold:0.2,0.9"]


def test_a_comparison_is_made_once(run: Callable[..., Any], model: Any, tmp_path: Path) -> None:
    arguments = ["compare", *DECODERS, "-b", "1/4", "-b", "full", "--out", str(tmp_path), *QUICK]
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [(p["decoder"], p["setting"], p["budget"]) for p in found["points"]] == [
        ("flow:confidence", "", "1/4 (2 passes)"),
        ("flow:confidence", "", "full (8 passes)"),
        ("mask+temperature=0.5", "", "1/4 (2 passes)"),
        ("mask+temperature=0.5", "", "full (8 passes)"),
        ("threshold:0.2,0.9", "0.2", "full (8 passes)"),
        ("threshold:0.2,0.9", "0.9", "full (8 passes)"),
    ]
    assert [p["share"] for p in found["points"][2:4]] == [0.25, 1.0]
    assert found["points"][2]["rules"]["temperature"] == 0.5
    assert [p["rules"]["threshold"] for p in found["points"][4:]] == [0.2, 0.9]
    assert all(0 <= area <= 1 for by_task in found["areas"].values() for area in by_task.values())
    assert (tmp_path / "compare.png").is_file() == (find_spec("matplotlib") is not None)
    passes = model.passes
    page = run(*arguments)
    assert page.stdout == (tmp_path / "compare.md").read_text() + "\n"
    assert "| mean area |" in page.stdout
    assert "threshold=0.2 or 0.9" in page.stdout
    assert model.passes == passes


def test_more_decoders_reuse_the_samples_there_are(
    run: Callable[..., Any], model: Any, tmp_path: Path
) -> None:
    common = ["--budget", "1/2", "--out", str(tmp_path), *QUICK]
    assert run("compare", "-d", "mask", *common).exit_code == 0
    first = model.passes
    assert run("compare", "-d", "mask", "-d", "mask:margin", *common).exit_code == 0
    assert model.passes == 2 * first
    assert len(list((tmp_path / "samples").iterdir())) == 2


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    """The record but for what no two runs have in common."""
    for point in found["points"]:
        assert point["summary"].pop("seconds_mean") > 0
    return found


def test_the_command_is_one_call_in_python(
    run: Callable[..., Any], model: Any, tmp_path: Path
) -> None:
    arguments = ["-d", "mask", "-b", "1/4", "-b", "full", "--out", str(tmp_path / "a"), *QUICK]
    shown = json.loads(run("compare", *arguments, "--json").stdout)
    named = compare(
        "tiny-aligned",
        ["minimath"],
        ["mask"],
        budgets=["1/4", "full"],
        limit=2,
        out=tmp_path / "b",
        gen_length=8,
        command=shown["command"],
    )
    assert without_times(json.loads(json.dumps(named.record()))) == without_times(shown)
    assert named.page == (tmp_path / "b/compare.md").read_text()
    assert (tmp_path / "b/README.md").is_file()
    loaded = compare(model, "minimath", ["mask"], budgets=[2, 8], limit=2, gen_length=8)
    assert loaded.areas == named.areas
    assert [p.found.budget for p in loaded.points] == ["2 passes", "8 passes"]
    assert loaded.page.startswith("# Decoders on byte-toy")


def test_bad_input_is_named(run: Callable[..., Any], tmp_path: Path) -> None:
    cases = [
        (["-d", "maks"], "did you mean 'mask'"),
        (["-d", "threshold:{0.5,0.9}"], "without braces: --sweep threshold:0.5,0.9"),
        (["-d", "flow:confidence,mask"], "give a flag for each: -d flow:confidence -d mask"),
        (["--sweep", "mask"], "end it with a list of values"),
        (["-d", "threshold:high"], "threshold is 'high'"),
        (["-d", "mask+temprature=1"], "did you mean 'temperature'"),
        (["-d", "flow:learned:none"], "policy file 'none.safetensors'"),
        (["-b", "5/4"], "as a share it must be"),
        (["-d", "mask", "-o", "tau=1"], "unknown option 'tau'"),
        (["-d", "mask", "-o", "budget=4"], "budget is what is varied here"),
        (["-t", "minimat"], "did you mean 'minimath'"),
        (["--split", "tests"], "did you mean 'test'"),
    ]
    for arguments, message in cases:
        result = run("compare", *arguments, "--out", str(tmp_path / "bad"))
        assert result.exit_code == 2, (arguments, result.output)
        assert message in result.stderr
        assert "Traceback" not in result.output
    assert not (tmp_path / "bad").exists()


def test_ctrl_c_says_what_was_kept_and_the_same_command_goes_on(
    run: Callable[..., Any], model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["compare", "-d", "mask", "-b", "full", "--out", str(tmp_path), *QUICK]
    one_at_a_time = [*arguments, "-o", "max_batch=1"]
    logits, left = type(model).logits, [12]

    def interrupted(*given: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return logits(*given, **named)

    monkeypatch.setattr(type(model), "logits", interrupted)
    result = run(*one_at_a_time)
    assert result.exit_code == 130
    samples = tmp_path / "samples"
    assert f"stopped: 1 new answer is kept in {samples}; the same command goes on" in result.stderr
    monkeypatch.undo()
    before = model.passes
    monkeypatch.setattr("xpredflow.models.embedded.load", lambda source, **_: model)
    assert run(*one_at_a_time).exit_code == 0
    assert model.passes == before + 8


def test_the_bar_moves_with_passes(model: Any) -> None:
    console = Console(force_terminal=True, width=160, record=True)
    advanced: list[tuple[float, float]] = []

    class Spy(BenchBar):
        def step(self, step: Any) -> None:
            super().step(step)
            assert self.progress is not None
            [shown] = self.progress.tasks
            advanced.append((shown.completed, shown.total or 0))

    watch = Spy(console)
    compare(
        model, "minimath", ["threshold:0.5"], budgets=["full"], limit=3, watch=watch, gen_length=8
    )
    assert advanced[-1] == (24, 24)  # 3 answers of 8 passes at most, whatever they used
    assert advanced == sorted(advanced)
    assert len(advanced) > 1
    assert advanced[0][0] < 24
    assert watch.kept == 3


def test_settings_are_chosen_on_one_split_and_shown_once_on_the_other(
    run: Callable[..., Any], model: Any, tmp_path: Path
) -> None:
    arguments = ["compare", "--choose", "validation", "--choose-limit", "3", "--draws", "2"]
    arguments += ["-d", "flow:confidence", "-d", "mask", "-b", "1/4", "-b", "1/2"]
    arguments += ["--at", "1", "--at", "1/2", "--out", str(tmp_path), *QUICK]
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["reference"], found["settings"]) == ("flow:confidence", 2)
    assert [(one["target"], one["decoder"]) for one in found["chosen"]] == [
        *((1, "flow:confidence"), (1, "mask"), (4, "flow:confidence"), (4, "mask"))
    ]
    assert found["chosen"][1]["setting"] is None  # it takes all of its budget
    mask = found["chosen"][3]
    assert (mask["chosen_by"]["n"], mask["summary"]["n"]) == (3, 4)
    assert mask["summary"]["read_mean"] == mask["summary"]["passes_mean"] * 8
    assert mask["against"]["corrected"] <= 1
    passes = model.passes
    page = run(*arguments)
    assert page.stdout == (tmp_path / "chosen.md").read_text() + "\n"
    assert model.passes == passes
    assert "shown once on test (4 of minimath, 2 draws together)" in page.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "4"], "give --choose validation too"),
        (["--draws", "2"], "give --choose validation too"),
        (["--choose", "test"], "chosen and shown on the same split 'test'"),
        (["--choose", "validation", "--at", "0"], "budget is 0"),
        (["--choose", "validation", "--sweep", "eb:0.1,0.5"], "different numbers of settings"),
    ],
)
def test_how_settings_are_chosen_is_checked_first(
    run: Callable[..., Any], tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = run("compare", "-d", "mask", "-b", "1/4", *arguments, "--out", str(tmp_path), *QUICK)
    assert result.exit_code == 2
    assert message in result.stderr

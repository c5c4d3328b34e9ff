"""`xpredflow compare` as a user calls it, on the toy model."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

QUICK = ["-t", "minimath", "--limit", "2", "-o", "gen_length=8"]
DECODERS = "flow:confidence,threshold:{0.2,0.9},mask+temperature=0.5"


def test_a_comparison_is_made_once(run: Callable[..., Any], model: Any, tmp_path: Path) -> None:
    arguments = ["compare", "-d", DECODERS, "--budgets", "1/4,full", "--out", str(tmp_path), *QUICK]
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [(p["decoder"], p["setting"]) for p in found["points"]] == [
        ("flow:confidence", "budget 1/4"),
        ("flow:confidence", "budget full"),
        ("threshold:{0.2,0.9}", "0.2"),
        ("threshold:{0.2,0.9}", "0.9"),
        ("mask+temperature=0.5", "budget 1/4"),
        ("mask+temperature=0.5", "budget full"),
    ]
    assert [p["share"] for p in found["points"][-2:]] == [0.25, 1.0]
    assert all(0 <= area <= 1 for by_task in found["areas"].values() for area in by_task.values())
    assert (tmp_path / "compare.png").is_file() == (find_spec("matplotlib") is not None)
    passes = model.passes
    page = run(*arguments)
    assert page.stdout == (tmp_path / "compare.md").read_text() + "\n"
    assert "| mean area |" in page.stdout
    assert model.passes == passes


def test_more_decoders_reuse_the_samples_there_are(
    run: Callable[..., Any], model: Any, tmp_path: Path
) -> None:
    common = ["--budgets", "1/2", "--out", str(tmp_path), *QUICK]
    assert run("compare", "-d", "mask", *common).exit_code == 0
    first = model.passes
    assert run("compare", "-d", "mask,mask:margin", *common).exit_code == 0
    assert model.passes == 2 * first
    assert len(list((tmp_path / "samples").iterdir())) == 2


def test_bad_input_is_named(run: Callable[..., Any], tmp_path: Path) -> None:
    cases = [
        (["-d", "maks"], "did you mean 'mask'"),
        (["-d", "threshold:{0.5"], "at most one list of values"),
        (["-d", "threshold:high"], "threshold is 'high'"),
        (["-d", "mask+temprature=1"], "did you mean 'temperature'"),
        (["-d", "flow:learned:none"], "policy file 'none.safetensors'"),
        (["--budgets", "5/4"], "as a share it must be"),
        (["-d", "mask", "-o", "tau=1"], "unknown option 'tau'"),
        (["-t", "minimat"], "did you mean 'minimath'"),
        (["--split", "tests"], "did you mean 'test'"),
    ]
    for arguments, message in cases:
        result = run("compare", *arguments, "--out", str(tmp_path / "bad"))
        assert result.exit_code == 2, (arguments, result.output)
        assert message in result.stderr
        assert "Traceback" not in result.output
    assert not (tmp_path / "bad").exists()

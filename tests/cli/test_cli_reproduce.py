"""`xpredflow reproduce` as a user calls it, on the toy model."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from xpredflow.cli import app
from xpredflow.cli.completion import table_names
from xpredflow.policies.beta import BetaNetwork, save_policy

QUICK = ["-t", "minimath", "--limit", "2", "-o", "gen_length=8", "-o", "max_batch=16"]


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    """An aligned model, a policy, an alignment run and a directory for the results."""
    save_policy(BetaNetwork(), tmp_path / "policy", {})
    run = tmp_path / "run"
    run.mkdir()
    values = {"mse_masked": 1.0, "ce_masked": 0.5, "reference_ce_masked": 0.5}
    lines = [{"step": i, "mse_unmasked": 1 / (i + 1), **values} for i in range(30)]
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = [
        "--aligned",
        "my/aligned",
        "--policy",
        str(tmp_path / "policy"),
        "--align-run",
        str(run),
    ]
    return [*given, "--out", str(tmp_path / "out")]


def test_the_main_table_is_made_once(
    run: Callable[..., Any], model: Any, inputs: list[str], tmp_path: Path
) -> None:
    result = run("reproduce", "main", *inputs, *QUICK, "--json")
    assert result.exit_code == 0, result.stderr
    table = json.loads(result.stdout)
    rows = {row["method"]: row["ours"]["tiny, minimath"] for row in table["rows"]}
    assert (rows["full"]["passes_mean"], rows["quarter"]["passes_mean"]) == (8, 2)
    assert rows["matched"]["passes_mean"] == round(rows["flow"]["passes_mean"])
    assert rows["matched extended"]["passes_mean"] == round(rows["extended"]["passes_mean"])
    weights = ["pretrained", *("aligned", "pretrained") * 3]
    assert [row["weights"] for row in table["rows"]] == weights
    assert rows["quarter"]["budget"] == "1/4 (2 passes)"
    assert rows["flow"]["rules"]["policy"] == f"learned:{tmp_path / 'policy'}"
    assert rows["flow"]["rules"]["tau"] == 0.9
    assert rows["full"]["rules"]["decoder"] == "mask"
    assert table["command"].startswith("xpredflow reproduce main --task minimath --option ")
    assert " --option gen_length=8 --option max_batch=16 --json " in table["command"]
    assert " --aligned my/aligned --policy " in table["command"]
    assert table["command"].endswith(f" --out {tmp_path / 'out'}")
    assert len(table["claims"]) == 8
    assert json.loads((tmp_path / "out/main.json").read_text()) == table
    kept = list((tmp_path / "out/samples").glob("minimath-*.jsonl"))
    assert len(kept) in (6, 7)  # both flows may take equally many passes
    passes = model.passes
    again = run("reproduce", "main", *inputs, *QUICK, "--json")
    assert again.stdout == result.stdout
    assert model.passes == passes


def test_every_decoding_table_is_printed_and_written(
    run: Callable[..., Any], inputs: list[str], tmp_path: Path
) -> None:
    names = ["ablations", "policy", "passk", "topk", "softmask"]
    given = ["--softmask", str(tmp_path), "-o", "omega_s=0.5", "-o", "tau=0.95"]
    result = run("reproduce", *names, *inputs, *given, *QUICK)
    assert result.exit_code == 0, result.stderr
    for name in names:
        assert (tmp_path / f"out/{name}.md").read_text() in result.stdout
    assert "omega_s=0.5" in (tmp_path / "out/softmask.md").read_text()
    passk = json.loads((tmp_path / "out/passk.json").read_text())
    [sampled] = [row for row in passk["rows"] if row["method"] == "sampled 4"]
    ours = sampled["ours"]["tiny, minimath"]
    assert (ours["n"], sorted(ours["pass_at"])) == (20, ["1", "10", "2", "5"])
    assert "my/aligned, minimath, flow, budget 1/4 (2 passes), policy=confidence" in result.stderr


def test_all_makes_what_it_can_and_says_what_it_cannot(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    result = run("reproduce", "all", "--model", "my/model", "--out", str(tmp_path), *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "left out: main needs --aligned MODEL" in result.stderr
    index = (tmp_path / "README.md").read_text()
    assert "](anchor.md), " in index
    assert "(`main`) needs --aligned MODEL" in index
    assert (tmp_path / "anchor.md").read_text().count("| my/model, minimath (n = ") == 6
    assert (tmp_path / "anchor.png").is_file() == (find_spec("matplotlib") is not None)


def test_an_alignment_run_becomes_a_figure(
    run: Callable[..., Any], inputs: list[str], tmp_path: Path
) -> None:
    result = run("reproduce", "alignment", *inputs)
    assert result.exit_code == 0, result.stderr
    assert "Holds: the loss at unmasked positions falls to a tenth or less (5.6%" in result.stdout
    assert (tmp_path / "out/alignment.png").is_file() == (find_spec("matplotlib") is not None)


def test_consistency_before_and_after_on_the_embedded_model(tmp_path: Path) -> None:
    arguments = ["reproduce", "consistency", "--aligned", "tiny", "--out", str(tmp_path), *QUICK]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.stderr
    measured = json.loads(result.stdout)["ours"]["tiny, minimath"]
    assert measured["before"] == measured["after"]
    assert 0 <= measured["before"]["agreement"] <= 1


def test_without_matplotlib_the_page_says_so(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xpredflow.figures.find_spec", lambda name: None)
    result = run("reproduce", "anchor", "--out", str(tmp_path), *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "pip install 'xpredflow[plot]'" in result.stdout
    assert not (tmp_path / "anchor.png").exists()


def test_bad_input_is_named(run: Callable[..., Any], inputs: list[str], tmp_path: Path) -> None:
    policy = str(tmp_path / "policy")
    cases = [
        (["mian"], "did you mean 'main'"),
        (["main", "-m", "my/model"], "table 'main' needs --aligned MODEL"),
        (["main", "--aligned", "a"], "table 'main' needs --policy FILE"),
        (["main", "--aligned", "a", "--policy", "none"], "policy file 'none.safetensors'"),
        (["main", "--aligned", "a", "-m", "b", "-m", "c", "--policy", policy], "1 times for 2"),
        (["main", "--aligned", "a", "--policy", policy], "--aligned 'a': expected tiny"),
        (["anchor", "-t", "gsm8k", "--data", "gsm8k=x"], "table 'anchor' needs --answers FILE"),
        (["alignment", "--align-run", str(tmp_path)], "holds no log.jsonl"),
        (["anchor", "--answers", "none.jsonl"], "no file 'none.jsonl'"),
        (["anchor", "-o", "budget=4"], "budget is what is varied here"),
        (["anchor", "-o", "tauu=4"], "did you mean 'tau'"),
        (["anchor", "-t", "minimaths"], "did you mean 'minimath'"),
        (["anchor", "--split", "tset"], "did you mean 'test'"),
    ]
    for arguments, message in cases:
        result = run("reproduce", *arguments, "--out", str(tmp_path / "bad"))
        assert result.exit_code == 2, (arguments, result.output)
        assert message in result.stderr
        assert "Traceback" not in result.output
    assert not (tmp_path / "bad").exists()


def test_ctrl_c_says_how_to_go_on(
    run: Callable[..., Any], model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "logits", stop)
    result = run("reproduce", "anchor", "--out", str(tmp_path), *QUICK)
    assert result.exit_code == 130
    assert "the same command goes on" in result.stderr


def test_the_shell_offers_tables_in_the_papers_order() -> None:
    offered = [name for name, _ in table_names("")]
    assert offered[:6] == ["main", "softmask", "ablations", "policy", "passk", "topk"]
    assert offered[6:] == ["anchor", "consistency", "alignment", "all"]
    assert [name for name, _ in table_names("an")] == ["anchor"]

"""`xpredflow train-policy` and `xpredflow policy show` as a user calls them, on a small model."""

import json
import tomllib
from pathlib import Path

import pytest

from xpredflow import figures
from xpredflow.policies.beta import BetaConfig, BetaNetwork, save_policy
from xpredflow.training.common.answers import Answer

QUICK = [
    *("-t", "minimath", "-n", "2", "-o", "budget=4", "-o", "prompts=2", "-o", "group=2"),
    *("-o", "validation=2", "-o", "init_prompts=2", "-o", "init_fits=20", "-o", "hidden=8"),
    *("-o", "gen_length=12", "--threads", "1"),
]


def answer(number: int, solved: bool | None, source: str = "minimath") -> Answer:
    return Answer(number, source, "p", "a", [1], [2], 1, solved)


def answers(path: Path, *lines: Answer) -> Path:
    path.write_text("".join(line.line() for line in lines))
    return path


def test_it_trains_resumes_decodes_and_is_shown(run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run("train-policy", str(out), *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "note: the prompts are the first 1024 training problems" in done.stderr
    assert "update 0/2, begins with power:8, imitated to" in done.stderr
    assert "update 2/2, reward" in done.stderr
    assert "best on validation:" in done.stdout
    names = {f.name for f in out.iterdir()}
    assert names >= {"log.jsonl", "policy.png", "policy.json", "best.safetensors", "state.pt"}
    again = run("train-policy", str(out), *QUICK)
    assert again.exit_code == 2
    assert "pass --resume" in again.stderr
    longer = run("train-policy", str(out), *["3" if v == "2" else v for v in QUICK[:4]], *QUICK[4:],
                 "--resume")  # fmt: skip
    assert longer.exit_code == 0, longer.stderr
    assert "update 3/3" in longer.stderr
    assert "update 2/3" not in longer.stderr
    used = run("generate", "Hello", "--policy", f"learned:{out / 'policy'}")
    assert used.exit_code == 0, used.stderr
    rated = run("eval", "-t", "minimath", "--policy", f"learned:{out / 'best'}", "--limit", "2",
                "-b", "3", "--split", "validation", "--json")  # fmt: skip
    assert json.loads(rated.stdout)["n"] == 2
    shown = run("policy", "show", str(out / "policy"), "--out", str(tmp_path / "p.png"))
    assert shown.exit_code == 0, shown.stderr
    assert "Trained on minimath with model byte-toy: 3 updates of 2 prompts" in shown.stdout
    assert (tmp_path / "p.png").is_file()


def test_a_task_of_ones_own(run, tmp_path: Path) -> None:
    rows = [
        {"prompt": f"{n} + 1 =", "answer": n + 1, "grader": "number", "split": split}
        for n in range(8)
        for split in ("train", "validation")
    ]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = str(tmp_path / "mine.jsonl")
    done = run("train-policy", str(tmp_path / "run"), "-t", task, *QUICK[2:], "--tau", "0.8")
    assert done.exit_code == 0, done.stderr
    about = json.loads((tmp_path / "run/policy.json").read_text())["training"]
    assert about["config"]["tau"] == 0.8
    log = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert log[-1]["step"] == 2
    assert log[-1]["validation"]["accuracy"] == 0  # graded: the toy model knows no sums


def test_prompts_are_the_solved_ones(run, tmp_path: Path) -> None:
    file = answers(
        tmp_path / "a.jsonl",
        *(answer(3, True), answer(4, False), answer(5, None)),
        *(answer(6, True, "minicode"), answer(8, True)),
    )
    done = run("train-policy", str(tmp_path / "run"), *QUICK, "--answers", str(file))
    assert done.exit_code == 0, done.stderr
    assert "note: the prompts" not in done.stderr
    config = tomllib.loads((tmp_path / "run/run.toml").read_text())
    assert config["checks"]["prompt_pool"].startswith("2 problems")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "groop=4"], "unknown setting 'groop' of train-policy: did you mean 'group'"),
        (["-o", "group"], "-o 'group': expected NAME=VALUE, such as -o tau=0.95"),
        (["-o", "group=1"], "group is 1"),
        (["-o", "normalise=never"], "normalise is 'never': expected 'none', 'total' or 'position'"),
        (["-o", "init=pover:8"], "init is 'pover:8': give a heuristic"),
        (["-o", "init=learned:gone"], "'gone.safetensors' does not exist"),
        (["-n", "many"], "updates is 'many': expected a whole number"),
        (["-t", "chess"], "unknown task 'chess'"),
        (["-t", "humaneval"], "task 'humaneval' has no train split"),
        (["--answers", "gone.jsonl"], "no file 'gone.jsonl'"),
    ],
)
def test_bad_input_is_explained(run, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run("train-policy", str(tmp_path / "run"), *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_answers_to_something_else_are_refused(run, tmp_path: Path) -> None:
    file = answers(tmp_path / "a.jsonl", answer(1, False), answer(2, True, "minicode"))
    done = run("train-policy", str(tmp_path / "run"), "-t", "minimath", "--answers", str(file))
    assert done.exit_code == 2
    assert "2 answers and none is a solved one of 'minimath'" in done.stderr


def test_a_policy_is_shown_without_matplotlib(run, tmp_path: Path, monkeypatch) -> None:
    save_policy(BetaNetwork(), tmp_path / "p", {})
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    done = run("policy", "show", str(tmp_path / "p.safetensors"), "--out", str(tmp_path / "p.png"))
    assert done.exit_code == 0, done.stderr
    assert "How it was trained is not recorded." in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:2] in ("0.", "0")]
    assert len(rows) == 8
    assert all(0 < float(a) <= 1 for row in rows for a in row)
    assert "no picture without matplotlib" in done.stderr
    assert not (tmp_path / "p.png").exists()


def test_thresholds_that_a_policy_chooses_are_shown(run, tmp_path: Path) -> None:
    save_policy(BetaNetwork(BetaConfig(actions="thresholds")), tmp_path / "p", {})
    done = run("policy", "show", str(tmp_path / "p"))
    assert done.exit_code == 0, done.stderr
    [commit] = [line for line in done.stdout.splitlines() if line.startswith("commits from")]
    assert all(0.5 < float(c) < 1 for c in commit.split()[-5:])
    assert "re-edits below t" in done.stdout


def test_it_is_said_what_a_policy_ignores(run) -> None:
    done = run("policy", "show", "tiny")
    assert done.exit_code == 0, done.stderr
    assert "It looks at confidence c (a changes" in done.stdout
    assert "it all but ignores progress t (1.0" in done.stdout


def test_showing_what_is_not_there(run, tmp_path: Path) -> None:
    gone = run("policy", "show", str(tmp_path / "gone"))
    assert gone.exit_code == 2
    assert "does not exist" in gone.stderr
    save_policy(BetaNetwork(), tmp_path / "p", {})
    odd = run("policy", "show", str(tmp_path / "p"), "--out", str(tmp_path / "p.gif"))
    assert odd.exit_code == 2
    assert "name a picture that ends in .png, .svg, .pdf" in odd.stderr

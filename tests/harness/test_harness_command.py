"""`xpredflow lm-eval` as a user calls it, without a network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in import checkpoint
from typer.testing import CliRunner

from xpredflow.cli import app

# The harness reads the files of all its own tasks first, for ten seconds; none is used here.
ONLY_OURS = """
from lm_eval.tasks import TaskManager
TaskManager.__init__.__defaults__ = (None, None, False, None)
from xpredflow.cli import main
main()
"""
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def test_a_table_offline(tmp_path: Path) -> None:
    passes = tmp_path / "passes.jsonl"
    arguments = f"decoder=threshold,budget=2,max_batch=2,dtype=float32,passes_file={passes}"
    # the user's own tasks stand beside ours
    (tmp_path / "mine.yaml").write_text(
        "task: mine\ndataset_path: json\ntest_split: test\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path}/mine.jsonl}}}}\n"
        "doc_to_text: question\ndoc_to_target: answer\noutput_type: generate_until\n"
        "generation_kwargs: {until: ['.'], max_gen_toks: 4}\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    (tmp_path / "mine.jsonl").write_text('{"question": "1 + 1 =", "answer": "2"}\n' * 3)
    command = ["lm-eval", "--model", "xpredflow", "--model_args", arguments, "--limit", "2"]
    command += ["--tasks", "xpredflow_minimath,mine", "--include_path", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", ONLY_OURS, *command],
        capture_output=True,
        text=True,
        env={**os.environ, **OFFLINE, "HF_HOME": str(tmp_path / "hub")},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in ("xpredflow_minimath", "mine"):
        assert f"|{name}" in done.stdout.replace(" ", "")
        assert f"{name}: 2.0 forward passes per answer" in done.stderr
    assert len(passes.read_text().splitlines()) == 4


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness would log to the runner's standard error for good, which is closed soon."""
    monkeypatch.setattr("lm_eval.utils.setup_logging", lambda: None)


@pytest.mark.usefixtures("quiet")
def test_bad_input_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr(TaskManager.__init__, "__defaults__", (None, None, False, None))
    command = ["lm-eval", "--model", "xpredflow", "--tasks", "xpredflow_minimath", "--model_args"]
    result = CliRunner().invoke(app, [*command, f"pretrained={checkpoint(tmp_path)},decodr=mask"])
    assert result.exit_code == 2
    assert "did you mean 'decoder'" in result.stderr


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lm_eval._cli", None)
    result = CliRunner().invoke(app, ["lm-eval", "ls", "tasks"])
    assert result.exit_code == 2
    assert "pip install 'xpredflow[eval]'" in result.stderr


@pytest.mark.usefixtures("quiet")
def test_help_is_ours_and_behind_a_word_it_is_the_harnesss() -> None:
    assert "xpredflow_minimath" in CliRunner().invoke(app, ["lm-eval", "--help"]).stdout
    assert "--num_fewshot" in CliRunner().invoke(app, ["lm-eval", "run", "--help"]).stdout

"""`xpredflow self-generate` as a user calls it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUICK = ["-o", "gen_length=8", "-o", "max_batch=4"]


def test_a_task_s_training_prompts(run: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    arguments = ["self-generate", "--data", "minimath", "--limit", "3", "--out", str(out), *QUICK]
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert f"{out}: 3 answers to 3 prompts, 0 of them right" in result.stdout
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["number"] for line in lines] == [0, 1, 2]
    assert {line["source"] for line in lines} == {"minimath"}
    assert all(len(line["response_ids"]) == 8 for line in lines)
    written = out.read_text()
    assert run(*arguments).exit_code == 0
    assert out.read_text() == written


def test_a_file_of_prompts_has_no_judge(run: Callable[..., Any], tmp_path: Path) -> None:
    data = tmp_path / "prompts.jsonl"
    data.write_text('{"prompt": "Hello"}\n{"prompt": "World"}\n')
    out = str(tmp_path / "out.jsonl")
    result = run("self-generate", "--data", str(data), "--out", out, *QUICK)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith("2 answers to 2 prompts\n")
    result = run("self-generate", "--data", str(data), "--out", out, "--keep", "solved", *QUICK)
    assert result.exit_code == 2
    assert "keep is 'solved', but" in result.stderr


def test_bad_input_is_named(run: Callable[..., Any], tmp_path: Path) -> None:
    out = str(tmp_path / "a.jsonl")
    for arguments, message in [
        (["--data", "mbpp", "--out", out], "never trained on"),
        (["--data", "nothing", "--out", out], "no prompts 'nothing'"),
        (["--data", "minimath", "--out", out, "--keep", "good"], "choose all or solved"),
        (["--data", "minimath", "--out", out, "--limit", "0"], "'--limit'"),
        (["--data", "minimath", "--out", str(tmp_path / "a.json")], "suffix .jsonl"),
        (["--data", "minimath", "--out", out, "-o", "gen_lenth=8"], "gen_length"),
    ]:
        result = run("self-generate", *arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr
        assert not Path(out).exists()

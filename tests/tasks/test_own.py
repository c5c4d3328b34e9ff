"""Tasks from files: what rows may say, how they are split and graded, and what is refused."""

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from growth import assert_linear

from xpredflow import InputError
from xpredflow.sandbox import Sandbox
from xpredflow.tasks import Generated, Task, make_task, make_tasks, prompt_of, right_answer
from xpredflow.tasks.graders import GRADERS, find_choice, find_number

ADD = {"prompt": "add", "grader": "python", "entry_point": "add"}


def write(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def verdicts(path: Path, row: dict[str, Any], *texts: str) -> list[bool]:
    task = make_task(write(path / "mine.jsonl", {"prompt": "?", **row}))
    return [task.score(task.problem("all", 0), text).passed for text in texts]


def test_a_file_is_a_task(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "2 + 3?"}, {"role": "assistant", "content": "5"}]
    rows = [{"messages": turns, "answer": 5}, {"prompt": "\u2028", "answer": "1", "id": "odd"}]
    task = make_task(write(tmp_path / "mine.jsonl", *rows), grader="number")
    assert isinstance(task, Task)
    assert isinstance(task, Generated)
    assert (task.name, task.response_length, task.runs_programs) == ("mine", 256, False)
    first, second = (task.problem("all", i) for i in range(2))
    assert prompt_of(first) == turns[:1]
    assert (first.id, first.prompt) == ("mine/0", "2 + 3?")
    assert (second.id, second.prompt) == ("odd", "\u2028")
    assert [right_answer(task, p) for p in (first, second)] == ["#### 5", "#### 1"]
    assert task.score(first, task.answer(first, Random(0))).passed


def test_every_kind_of_file_holds_the_same_rows(tmp_path: Path) -> None:
    rows = [{"prompt": f"p{n}", "answer": n, "grader": "number"} for n in range(3)]
    lines = Path(write(tmp_path / "a.jsonl", *rows))
    (tmp_path / "b.json").write_text(json.dumps(rows))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(lines.read_bytes()))
    (tmp_path / "d.jsonl").write_bytes(b"\xef\xbb\xbf" + lines.read_bytes().replace(b"\n", b"\r\n"))
    names = ["a.jsonl", "b.json", "c.jsonl.gz", "d.jsonl"]
    if pytest.importorskip("pyarrow"):
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist(rows), tmp_path / "e.parquet")
        names.append("e.parquet")
    for name in names:
        task = make_task(str(tmp_path / name))
        assert [task.problem("all", i).prompt for i in range(3)] == ["p0", "p1", "p2"], name


def test_splits_are_decided_by_the_prompt_alone(tmp_path: Path) -> None:
    rows = [{"prompt": f"problem {n}", "answer": n} for n in range(1000)]
    task = make_task(write(tmp_path / "a.jsonl", *rows), grader="number")
    sizes = [task.size(split) for split in ("train", "validation", "test", "all")]
    assert sum(sizes[:3]) == sizes[3] == task.count_problems() == 1000
    assert sizes[:3] == pytest.approx([800, 100, 100], abs=40)
    other = make_task(write(tmp_path / "b.jsonl", *rows[::-1][:500]), grader="number")
    held_out = {other.problem("test", i).prompt for i in range(other.size("test"))}
    assert held_out < {task.problem("test", i).prompt for i in range(sizes[2])}
    with pytest.raises(InputError, match="did you mean 'test'"):
        task.size("tset")


def test_a_split_column_decides_where_there_is_one(tmp_path: Path) -> None:
    rows = [{"prompt": str(n), "answer": n, "split": "dev" if n else "test"} for n in range(3)]
    task = make_task(write(tmp_path / "a.jsonl", *rows), grader="number")
    assert [task.size(split) for split in ("dev", "test", "all")] == [2, 1, 3]
    with pytest.raises(InputError, match="unknown split 'train' of task 'a'"):
        task.size("train")


def test_columns_of_ones_own_and_lengths(tmp_path: Path) -> None:
    rows = [{"q": "1+1", "gold": "so 1+1=2 #### 2", "n": 9}, {"q": "2+2", "gold": "4", "n": 12}]
    path = write(tmp_path / "a.jsonl", *rows)
    columns = {"prompt": "q", "answer": "gold", "response_length": "n"}
    task = make_task(path, columns=columns, grader="number")
    assert task.response_length == 12
    assert task.score(task.problem("all", 0), "2").passed
    assert make_task(path, columns=columns, grader="number", response_length=5).response_length == 5
    other = make_task(path, columns={"prompt": "q", "answer": "gold"}, grader="exact")
    assert len({task.digest, other.digest}) == 2  # type: ignore[attr-defined]


def test_exact(tmp_path: Path) -> None:
    row = {"answer": ["Paris", "paris"], "grader": "exact"}
    assert verdicts(tmp_path, row, " Paris\n", "paris", "PARIS", "It is Paris") == [1, 1, 0, 0]
    assert verdicts(tmp_path, {"answer": 1.5, "grader": "exact"}, "1.5", "1.50") == [1, 0]


def test_number(tmp_path: Path) -> None:
    row = {"answer": 1234, "grader": "number"}
    right = ["#### 1,234", "It is $1,234.00.", "1 and 1234", "#### 1234 of 9"]
    wrong = ["1235", "none", "#### none 1234"[:9], "1,2,34", "9" * 5000, "####", "12345"]
    assert verdicts(tmp_path, row, *right) == [True] * 4
    assert verdicts(tmp_path, row, *wrong) == [False] * 7
    assert find_number("5-3") == "3"
    assert find_number("at -3.25 degrees") == "-3.25"
    assert verdicts(tmp_path, {"answer": "0.5", "grader": "number"}, ".5 or 0.50", "5") == [1, 0]


def test_choice(tmp_path: Path) -> None:
    row = {"answer": "B", "grader": "choice", "choices": ["red", "dark blue", "green"]}
    right = ["B", "b.", "(B)", "The answer is B.", "Answer: (B) dark blue", "Dark blue", "#### B"]
    right += ["A) is wrong, so B)", "I would say dark blue, of course"]
    wrong = ["A", "A man is red", "", "C) or so", "red or green", "D", "The answer is C, not B"]
    assert verdicts(tmp_path, row, *right) == [True] * len(right)
    assert verdicts(tmp_path, row, *wrong) == [False] * len(wrong)
    assert verdicts(tmp_path, {**row, "answer": "dark blue"}, "B", "A") == [1, 0]
    assert verdicts(tmp_path, {"answer": "d", "grader": "choice"}, "D", "E") == [1, 0]


def test_regex(tmp_path: Path) -> None:
    row = {"answer": r"(?i)\bparis\b", "grader": "regex"}
    assert verdicts(tmp_path, row, "in Paris.", "comparison") == [1, 0]
    explodes = {"answer": r"(x+x+)+(y|z)+\1q$", "grader": "regex"}
    assert verdicts(tmp_path, explodes, "x" * 5000) == [0]  # without a bound it would not end


def test_programs_run_in_the_sandbox(tmp_path: Path) -> None:
    rows = [
        {**ADD, "tests": [[[1, 2], 3], [[0, 0], 0]], "solution": "def add(a, b): return a + b"},
        {**ADD, "tests": "assert add(1, TWO) == 3", "setup": "TWO = 2"},
        {**ADD, "tests": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"]},
    ]
    task = make_task(write(tmp_path / "code.jsonl", *rows))
    assert task.runs_programs
    problems = [task.problem("all", i) for i in range(3)]
    good, bad = right_answer(task, problems[0]), "def add(a, b): return 3"
    with Sandbox(workers=1) as box:
        for text in (good, f"Here:\n```python\n{good}\n```\nThere."):
            assert all(task.score(problem, text, box.runner).passed for problem in problems)
        assert [task.score(p, bad, box.runner).passed for p in problems] == [False, True, False]
    with pytest.raises(InputError, match="pass run="):
        task.score(problems[0], good)


@pytest.mark.parametrize("grader", ["number", "choice", "exact"])
def test_long_texts_are_read_in_linear_time(grader: str, tmp_path: Path) -> None:
    row = {"answer": {"number": 1, "choice": "A", "exact": "x"}[grader], "grader": grader}
    task = make_task(write(tmp_path / "mine.jsonl", {"prompt": "?", **row}))
    problem = task.problem("all", 0)
    for piece in ("1", "1,", "-", "answer ", "A ", "(A", " ", "####", "#### ", "```\n", "1.", "\n"):
        assert_linear(lambda text: task.score(problem, text), "", piece)
    assert find_choice(" " * 9, "AB", []) is None


def test_whatever_is_wrong_is_named_before_anything_runs(tmp_path: Path) -> None:
    good = {"prompt": "p", "answer": 1, "grader": "number"}
    cases: list[tuple[Any, str]] = [
        ({"answer": 1, "grader": "number"}, "neither a text in 'prompt' nor .* answer, grader"),
        ({**good, "answer": None}, "no 'answer': give a text"),
        ({**good, "answer": "many"}, "answer is 'many': the grader 'number' needs a number"),
        ({**good, "answer": {"a": 1}}, "answer is {'a': 1}: give a text"),
        ({**good, "answer": True}, "answer is True: give a text"),
        ({**good, "grader": "magic"}, "grader is 'magic': choose exact, number"),
        ({"prompt": "p", "answer": 1}, "no 'grader': choose exact, number"),
        ({**good, "grader": "choice"}, "answer is 1: give a letter from A to Z"),
        ({**good, "grader": "choice", "choices": ["a"]}, r"choices is \['a'\]: give a list of 2"),
        ({**good, "grader": "regex", "answer": "("}, "answer is '\\(': no pattern"),
        ({**ADD, "tests": "assert add("}, "tests is 'assert add\\(': not Python"),
        ({**ADD, "tests": "assert True"}, "they never call 'add'"),
        ({**ADD, "tests": [[1, 2]]}, "tests is .*: give asserts as code, or pairs"),
        ({**ADD, "entry_point": "a b", "tests": ""}, "entry_point is 'a b': give the name"),
        ({**ADD, "tests": "add(1)", "setup": "("}, "setup is '\\(': not Python"),
        ({**good, "messages": "hi", "prompt": None}, "messages is 'hi': expected"),
        ({**good, "split": 3}, "split is 3: give a name"),
        ({**good, "response_length": 0}, "response_length is 0: give a whole number"),
        ([1], r"is \[1\]: expected an object"),
    ]
    for row, message in cases:
        with pytest.raises(InputError, match=rf"mine\.jsonl, line 2.*{message}"):
            make_task(write(tmp_path / "mine.jsonl", good, row))
    path = tmp_path / "mine.jsonl"
    path.write_text('{"prompt": "p", "answer": 1}\n\n{"prompt": \n')
    with pytest.raises(InputError, match=r"mine\.jsonl, line 3 is not JSON"):
        make_task(str(path), grader="number")
    for text, message in [("", "has no rows"), ("\xff", "cannot be read")]:
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(InputError, match=message):
            make_task(str(path))


def test_options_are_named_when_they_are_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"prompt": "p", "answer": 1})
    for options, message in [
        ({"grader": "numbr"}, "did you mean 'number'"),
        ({"columns": {"promt": "prompt"}}, "did you mean 'prompt'"),
        ({"columns": {"prompt": "answr"}, "grader": "number"}, "did you mean 'answer'"),
        ({"response_length": 0, "grader": "number"}, "response_length is 0"),
        ({"data": "x"}, "takes neither data nor template"),
    ]:
        with pytest.raises(InputError, match=message):
            make_task(path, **options)
    with pytest.raises(InputError, match="belong to a file of rows"):
        make_task("minimath", grader="number")
    with pytest.raises(InputError, match="no file"):
        make_task(str(tmp_path / "none.jsonl"))


def test_several_tasks_take_what_is_meant_for_them(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"prompt": "p", "answer": 1})
    found = make_tasks(["minimath,minicode", path, "minimath"], grader="number")
    assert [task.name for task in found] == ["minimath", "minicode", "a"]
    assert make_task("minimath") is found[0]
    with pytest.raises(InputError, match=r"unknown task 'mbpp' in --data"):
        make_tasks(["minimath"], data={"mbpp": "x"})
    with pytest.raises(InputError, match="no tasks were given"):
        make_tasks([","])
    assert set(GRADERS) == {"exact", "number", "choice", "regex", "python"}

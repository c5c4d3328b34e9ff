"""Tasks from classes: a file of the user's, the registry, and what is refused."""

from pathlib import Path

import pytest

from xpredflow import InputError
from xpredflow.registry import TASKS, register
from xpredflow.tasks import Problem, SimpleTask, Task, Verdict, make_task
from xpredflow.tasks.base import split_of_text

MINE = """
from helper import WORD
from xpredflow.tasks import Problem, SimpleTask

class Echo(SimpleTask):
    response_length = 8

    def problems(self):
        for n in range(5):
            yield Problem(f"echo {n}", f"say {n}", meta={"answer": f"{n} {WORD}"})

    def grade(self, problem, text):
        return text == problem.meta["answer"]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("WORD = 'times'\n")
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_a_class_of_ten_lines_is_a_task(mine: Path) -> None:
    for name in (f"{mine}:Echo", str(mine)):
        task = make_task(name)
        assert isinstance(task, Task)
        assert (task.name, task.response_length, task.size("all")) == ("Echo", 8, 5)
        problem = task.problem("all", 3)
        assert task.score(problem, "3 times") == Verdict(True, "right")
        assert task.score(problem, "3") == Verdict(False, "wrong")
    before = task.digest  # type: ignore[attr-defined]
    mine.write_text(MINE.replace("range(5)", "range(6)"))
    assert make_task(str(mine)).digest != before  # type: ignore[attr-defined]
    assert make_task(str(mine)).size("all") == 6
    with pytest.raises(InputError, match="no problem 9 in Echo all: it has 6"):
        make_task(str(mine)).problem("all", 9)


def test_mistakes_in_the_file_are_named(mine: Path, tmp_path: Path) -> None:
    for text, name, message in [
        (MINE, "Ecko", "unknown task 'Ecko' in .*did you mean 'Echo'"),
        ("raise KeyError('x')", "Echo", r"cannot be imported \(KeyError: 'x'\)"),
        ("def (", "Echo", r"cannot be imported \(SyntaxError"),
        ("class Echo:\n    score = 1", "Echo", "is no task, for it lacks name, response_length"),
        ("x = 1", "x", "is no task, for it lacks name"),
        (MINE.replace("def grade", "def judge"), "Echo", "lacks grade"),
        (MINE + "\nclass Second(Echo): pass", "", "names no class: .* one of Echo, Second"),
    ]:
        mine.write_text(text)
        with pytest.raises(InputError, match=message):
            make_task(f"{mine}:{name}" if name else str(mine))
    with pytest.raises(InputError, match=r"no file .*none\.py"):
        make_task(str(tmp_path / "none.py:Echo"))
    with pytest.raises(InputError, match="takes neither columns"):
        make_task(f"{mine}:Echo", grader="number")


class Riddle(SimpleTask):
    """One riddle."""

    name = "riddles"

    def problems(self):
        yield Problem("r", "What?", meta={"split": "dev"})

    def grade(self, problem: Problem, text: str) -> Verdict:
        return Verdict(text == "That", "as told")


def test_a_registered_task_has_a_name() -> None:
    register("task", "riddles-of-a-test", Riddle)
    try:
        task = make_task("riddles-of-a-test")
        assert TASKS.entry("riddles-of-a-test").summary == "One riddle."
        assert task.size("dev") == 1
        assert task.score(task.problem("dev", 0), "That").reason == "as told"
        with pytest.raises(InputError, match="takes neither data nor template"):
            make_task("riddles-of-a-test", data="x")
    finally:
        TASKS._entries.pop("riddles-of-a-test")
    with pytest.raises(InputError, match=r"your own: mine\.jsonl or mine\.py:MyTask"):
        make_task("riddles-of-a-test")


def test_a_task_must_have_problems_that_are_problems() -> None:
    class Empty(Riddle):
        def problems(self):
            return []

    class Wrong(Riddle):
        def problems(self):
            return ["what?"]

    with pytest.raises(InputError, match="'Empty' has no problems"):
        Empty().size("all")
    with pytest.raises(InputError, match=r"problem 1 of task 'Wrong' is 'what\?'"):
        Wrong().size("all")
    with pytest.raises(InputError, match="carries no answer"):
        Riddle().answer(Riddle().problem("all", 0), None)  # type: ignore[arg-type]


def test_splits_by_prompt_stay_what_they_are() -> None:
    expected = ["train", "train", "train", "test", "train", "validation", "train", "train"]
    assert [split_of_text(f"p{n}") for n in range(8)] == expected

"""Grades answers with the tasks' own `score`; programs run in one sandbox for the whole run."""

import atexit
import json
from functools import cache
from typing import Any

from xpredflow.sandbox import Sandbox
from xpredflow.tasks import Problem, Task, make_task

_unsafe = False


def allow_unsafe(allowed: bool) -> None:
    """Whether programs may run with the user's own rights where there is no sandbox."""
    global _unsafe
    _unsafe = allowed


def grade(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """`process_results` of every task file of ours."""
    task = _task(doc["task"])
    problem = Problem(doc["id"], doc["prompt"], doc["level"], json.loads(doc["meta"]))
    run = sandbox().runner if task.runs_programs else None
    return {"acc": float(task.score(problem, results[0], run).passed)}


@cache
def sandbox() -> Sandbox:
    """The sandbox, opened on first use and closed with the process."""
    box = Sandbox(workers=1, unsafe=_unsafe)
    atexit.register(box.close)
    return box


@cache
def _task(name: str) -> Task:
    return make_task(name)  # without a file: what grading needs is in the document

"""Our problems as the harness's documents: made or read on this machine, nothing is downloaded."""

import json
import sys
from typing import Any

from datasets import Dataset

from xpredflow.errors import InputError
from xpredflow.harness.grading import sandbox
from xpredflow.tasks import BENCHMARKS, Problem, Task, make_task, prompt_of, right_answer

Row = dict[str, Any]


def problems(
    *, problems_of: str, split: str = "test", template: str | None = None, **metadata: Any
) -> dict[str, Dataset]:
    """`custom_dataset` of every task file of ours: the problems, and what is shown before them.

    --metadata reaches it: split=validation, and humaneval=FILE, mbpp=FILE or gsm8k=FILE.
    """
    task = _task(problems_of, template, metadata.get(problems_of))
    if task.runs_programs:
        sandbox()  # now: hours of decoding would be lost if there were none in the end
    size = task.size(split)
    if size == sys.maxsize:
        raise InputError(f"{split} of {problems_of} has no end: give split=validation or test")
    asked = [task.problem(split, index) for index in range(size)]
    tables = {"problems": Dataset.from_list([_row(task, problem) for problem in asked])}
    if shots := _shots(asked[0]):
        tables["shots"] = Dataset.from_list(shots)
    return tables


def _task(name: str, template: str | None, path: Any) -> Task:
    if name in BENCHMARKS and path is None:
        raise InputError(
            f"task {name!r} needs its file: --metadata {name}=FILE (.jsonl, .jsonl.gz or .parquet),"
            f" or --metadata {name}={BENCHMARKS[name].hub_id} to download it"
        )
    return make_task(name, None if path is None else str(path), template)


def _row(task: Task, problem: Problem) -> Row:
    asked = prompt_of(problem)
    meta = {key: value for key, value in problem.meta.items() if key != "messages"}
    return {
        "task": task.name,
        "id": problem.id,
        # earlier turns are the template's examples, which the harness adds as its few shots
        "prompt": asked if isinstance(asked, str) else asked[-1]["content"],
        # for the harness's records; grading does not look at it
        "answer": right_answer(task, problem),
        "level": problem.level,
        "meta": json.dumps(meta),  # as text: a table wants one type per column
    }


def _shots(problem: Problem) -> list[Row]:
    """The questions and answers before the problem's own question: the same for all problems."""
    asked = prompt_of(problem)
    turns = [] if isinstance(asked, str) else [turn["content"] for turn in asked]
    pairs = zip(turns[0:-1:2], turns[1:-1:2], strict=True)
    return [{"prompt": question, "answer": answer} for question, answer in pairs]

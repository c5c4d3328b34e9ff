"""MBPP: write a function from one sentence and three asserts; graded by those asserts."""

import ast
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from xpredflow.errors import InputError
from xpredflow.tasks.base import Message, Problem, Runner, Verdict, needs_runner
from xpredflow.tasks.published.benchmark import Benchmark, Template
from xpredflow.tasks.published.code_extraction import between_begin_and_done
from xpredflow.tasks.rows import Rows

# Of task ids, both ends included, as published.
SPLITS = {"prompt": (1, 10), "test": (11, 510), "validation": (511, 600), "train": (601, 974)}
SHOTS = (2, 3, 4)  # task ids of the worked examples in LLaDA's prompt
SECONDS = 10.0  # for one answer, as in LLaDA's published evaluation


def _question(text: str, tests: str) -> str:
    return (
        f"You are an expert Python programmer, and here is your task: {text} "
        f"Your code should pass these tests:\n\n {tests}\n"
    )


def _instruct(row: Mapping[str, Any], shots: Sequence[Mapping[str, Any]]) -> list[Message]:
    messages = []
    for number, shot in enumerate(shots):
        # The published prompt has a space behind each test but the very first.
        lines = [test.rstrip() + " " for test in shot["test_list"]]
        lines[0] = lines[0].rstrip() if number == 0 else lines[0]
        messages.append({"role": "user", "content": _question(shot["text"], "\n".join(lines))})
        answer = f"[BEGIN]\n '{shot['code'].strip()}' \n[DONE] \n\n "
        messages.append({"role": "assistant", "content": answer})
    tests = "\n".join(row["test_list"]) + "  "
    return [*messages, {"role": "user", "content": _question(row["text"], tests)}]


def _base(row: Mapping[str, Any], shots: Sequence[Mapping[str, Any]]) -> str:
    turns = [message["content"] for message in _instruct(row, shots)]
    return "\n".join([*turns, "[BEGIN]\n"])


def _until_done(text: str) -> str:
    return between_begin_and_done(text.split("[DONE]")[0])


class Mbpp(Benchmark):
    """974 problems, 500 of them the test split; 3-shot."""

    name = "mbpp"
    response_length = 256
    hub_id = "google-research-datasets/mbpp"
    fields = {  # noqa: RUF012
        "task_id": int,
        "text": str,
        "code": str,
        "test_list": list,
        "test_setup_code": str,
    }
    splits = tuple(SPLITS)
    templates = {  # noqa: RUF012
        "llada-instruct": Template(_instruct, between_begin_and_done),
        "llada-base": Template(_base, _until_done),
    }

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """The verdict of `run` (a sandbox) on the asserts."""
        return needs_runner(self.name, run)(self.extract(problem, text), problem.meta)

    def published_answer(self, problem: Problem) -> str:
        code = self._by_id[problem.id]["code"]
        begin = "[BEGIN]\n " if problem.meta["template"] == "llada-instruct" else ""
        return f"{begin}'{code}' \n[DONE]"

    def _grading(self, row: Mapping[str, Any]) -> dict[str, Any]:
        suite = "\n".join(row["test_list"])
        names = names_tested(row["code"], f"{row['test_setup_code']}\n{suite}")
        imports = "".join(f"import {name}\n" for name in modules_tested(row["code"], suite))
        return {
            "entry_point": names[0],
            "names": names,
            "setup": imports + row["test_setup_code"],
            "tests": suite,
            "timeout": SECONDS,
        }

    @cached_property
    def shots(self) -> Rows:
        found = [row for row in self.rows("prompt") if row["task_id"] in SHOTS]
        if len(found) < len(SHOTS):
            raise InputError(
                f"{str(self.source)!r} lacks the tasks {SHOTS} that the 3-shot prompt shows: give"
                " the whole of MBPP (974 rows)"
            )
        return found

    def _load(self) -> dict[str, Rows]:
        files = [f"full/{split}-00000-of-00001.parquet" for split in SPLITS]
        rows = sorted(self._read(*files), key=lambda row: row["task_id"])
        return {
            split: [row for row in rows if first <= row["task_id"] <= last]
            for split, (first, last) in SPLITS.items()
        }


def names_tested(solution: str, tests: str) -> list[str]:
    """What the published solution defines and its tests use, functions first.

    From the published solution and not from the candidate: a candidate that defines `set` or
    `len` must not change what these mean in the tests.
    """
    used = _names(tests)
    functions, others = [], []
    for node in _parse(solution).body:
        if isinstance(node, ast.FunctionDef):
            functions.append(node.name)
        elif isinstance(node, ast.ClassDef):
            others.append(node.name)
        elif isinstance(node, ast.Assign):
            others += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in dict.fromkeys(functions + others) if name in used]


def modules_tested(solution: str, tests: str) -> list[str]:
    """The modules that a test uses and leaves to the solution to import."""
    imports = [node for node in ast.walk(_parse(solution)) if isinstance(node, ast.Import)]
    names = [alias.name for node in imports for alias in node.names if not alias.asname]
    return [name for name in dict.fromkeys(names) if name in _names(tests)]


def _names(code: str) -> set[str]:
    return {node.id for node in ast.walk(_parse(code)) if isinstance(node, ast.Name)}


def _parse(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # published solutions write "\d" without the r
        return ast.parse(code)

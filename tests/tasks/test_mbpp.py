"""MBPP: LLaDA's 3-shot prompt and extraction; which published solutions grade."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from xpredflow.sandbox import Job, Sandbox
from xpredflow.tasks import Mbpp, prompt_of
from xpredflow.tasks.published.code_extraction import between_begin_and_done
from xpredflow.tasks.published.mbpp import SPLITS, modules_tested, names_tested

DATA = Path(__file__).parents[3] / "shared/data/mbpp.jsonl"
# Published solutions that do not grade, and why.
DICT_SUBCLASS = {40, 88, 653, 902}  # return a Counter or a defaultdict, no plain dict
PASSES_A_TYPE = {533}  # the test passes the class `int` as an argument
ENDS_WITH_A_QUOTE = {44, 217, 337, 537}  # LLaDA's extraction takes a last ' for the closing one


@pytest.fixture(scope="module")
def published():
    if not DATA.is_file():
        pytest.skip(f"no {DATA}")
    return Mbpp(DATA)


def test_splits_are_the_published_ones(published):
    sizes = {split: len(published.prompts(split)) for split in SPLITS}
    assert sizes == {"prompt": 10, "test": 500, "validation": 90, "train": 374}
    assert published.problem("test", 0).id == "mbpp/11"
    assert published.count_problems() == 974


def test_prompts_are_lladas(published):
    def digest(value):
        return sha256(value.encode()).hexdigest()[:16]

    # Of the prompt that the configuration in LLaDA's repository makes of task 11.
    chat = prompt_of(published.prompts("test", "llada-instruct")[0])
    assert digest(json.dumps(chat)) == "eb65ce0273192416"
    text = prompt_of(published.prompts("test", "llada-base")[0])
    assert digest(text) == "fe0d302e4faa0fe3"
    assert published.response_length == 256


@pytest.mark.parametrize(
    "text",
    [
        "[BEGIN]\n 'def f():\n    return 1' \n[DONE]",
        "[BEGIN]\ndef f():\n    return 1\n[DONE]\nmore",
        "BEGIN 'def f():\n    return 1' DONE",
        "```python\ndef f():\n    return 1\n```",
        "Here:\n```\ndef f():\n    return 1\n```\nDone.",
        "[BEGIN]\ndef f():\n    return 1",
        "'def f():\n    return 1' [DONE]",
        "def f():\n    return 1",
    ],
)
def test_extraction(text):
    assert between_begin_and_done(text) == "def f():\n    return 1"


def test_names_come_from_the_published_solution():
    solution = "import math, re\nX = 3\nclass N: pass\ndef g(): pass\ndef sum(a): return a"
    tests = "assert sum(N(X)) == math.pi + len([])"
    assert names_tested(solution, tests) == ["sum", "X", "N"]
    assert modules_tested(solution, tests) == ["math"]


def test_published_solutions_grade(published):
    unusual = DICT_SUBCLASS | PASSES_A_TYPE | ENDS_WITH_A_QUOTE
    every = [problem for split in SPLITS for problem in published.prompts(split)]
    # a third of them takes long enough; those with a known reason to fail are all among them
    problems = [p for n, p in enumerate(every) if n % 3 == 0 or int(p.id[5:]) in unusual]
    with Sandbox(workers=2) as box:
        jobs = []
        for problem in problems:
            grading = {k: v for k, v in problem.meta.items() if k not in ("template", "messages")}
            program = published.extract(problem, published.published_answer(problem))
            # ample time: the slowest takes seconds, and this is no test of the machine's speed
            jobs.append(Job(program, **{**grading, "timeout": 120.0}))
        verdicts = box.map(jobs)
        failed = {int(p.id[5:]) for p, v in zip(problems, verdicts, strict=True) if not v.passed}
        assert failed == unusual
        assert len(problems) - len(failed) >= 320
        wrong = published.score(problems[0], "def min_cost(*a):\n    return 8", box.runner)
        assert wrong.reason.endswith("returned 8")

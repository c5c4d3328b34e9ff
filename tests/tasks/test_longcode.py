"""longcode: answers of several functions are right in every style, and names must agree."""

import ast
import re
from collections import Counter
from random import Random

import pytest
from trusted_runner import trusted_run

from xpredflow.errors import InputError
from xpredflow.tasks.generated.longcode.answers import CHANGE_NAMES, STYLES, TEST_NAMES, write
from xpredflow.tasks.generated.longcode.task import LongCode
from xpredflow.tasks.generated.minicode.pipeline import parse

TASK = LongCode()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("split", ["train", "people", "test", "paraphrase"])
def test_every_style_answers_every_problem(style, split):
    rng = Random(0)
    for index in range(250):
        problem = TASK.problem(split, index)
        program = write(parse(problem.id), style, rng)
        verdict = TASK.score(problem, program, run=trusted_run)
        assert verdict.passed, (problem.prompt, program, verdict.reason)


def test_answers_have_a_function_for_each_step_and_use_it():
    for index in range(300):
        problem = TASK.problem("train", index)
        program = TASK.answer(problem, Random(index))
        defined = [node.name for node in ast.parse(program).body]  # type: ignore[attr-defined]
        assert len(defined) == len(parse(problem.id).steps) + 1 >= 4
        assert defined[-1] == problem.meta["entry_point"]
        assert all(program.count(f"{name}(") == 2 for name in defined[:-1])
        assert len(set(defined)) == len(defined)


def test_names_are_free_but_must_agree():
    """Any one use of a helper's name replaced by another helper's breaks the answer."""
    broken = Counter()
    problems = (TASK.problem("train", index) for index in range(200))
    for problem in [p for p in problems if p.meta["style"] == "helpers"][:40]:
        answers = {TASK.answer(problem, Random(seed)) for seed in range(40)}
        assert len(answers) > 25
        program = min(answers)
        first = re.search(r"def (\w+)", program).group(1)  # type: ignore[union-attr]
        other = next(f"{n}1" for n in (*TEST_NAMES, *CHANGE_NAMES) if n not in program)
        with pytest.raises(NameError, match=first):
            trusted_run(program.replace(f"def {first}(", f"def {other}("), problem.meta)
        broken[first] += 1
    assert sum(broken.values()) == 40


def test_a_missing_step_is_wrong():
    """The hidden tests see each helper: one that does nothing fails."""
    failed = tried = 0
    for index in range(60):
        problem = TASK.problem("validation", index)
        program = write(parse(problem.id), "stages", Random(index))
        lines = program.split("\n")
        for number in range(1, len(lines) - 2, 2):
            source = re.search(r" in (\w+(?:\([^)]*\))?)", lines[number]).group(1)  # type: ignore[union-attr]
            changed = [*lines[:number], f"    return {source}", *lines[number + 1 :]]
            tried += 1
            failed += not trusted_run("\n".join(changed), problem.meta).passed
    assert tried > 180
    assert failed > 0.9 * tried


def test_scoring_needs_a_runner():
    with pytest.raises(InputError, match="run="):
        TASK.score(TASK.problem("test", 0), "def f(): pass")

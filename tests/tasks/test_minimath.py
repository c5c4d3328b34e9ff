"""minimath: every worked answer is right line by line, and scoring is strict."""

import re
from collections import Counter
from random import Random

import pytest

from xpredflow.tasks.base import Problem
from xpredflow.tasks.generated.minimath.story import LARGEST_SUM, SMALLEST, parse
from xpredflow.tasks.generated.minimath.task import MiniMath
from xpredflow.tasks.generated.minimath.working import STYLES, work

TASK = MiniMath()
EQUATION = re.compile(r"(\d+)([-+*/])(\d+) ?= ?(\d+)")


def test_answers_are_right_line_by_line():
    rng = Random(0)
    for index in range(3_000):
        problem = TASK.problem("train", index)
        text = TASK.answer(problem, rng)
        assert TASK.score(problem, text).passed
        equations = EQUATION.findall(text)
        assert len(equations) == problem.level + 1
        for a, sign, b, result in equations:
            a, b, result = int(a), int(b), int(result)
            value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[sign]
            assert value == result, (problem.prompt, text)
            assert SMALLEST <= result <= LARGEST_SUM
        assert int(equations[-1][3]) == problem.meta["answer"]


def test_prompts_tell_the_whole_story():
    for index in range(1_000):
        problem = TASK.problem("train", index)
        story = parse(problem.id)
        assert story.id == problem.id
        digits = [int(n) for n in re.findall(r"\d+", problem.prompt)]
        expected = []
        for holder in story.holders:
            expected.append(holder.start)
            for event in holder.events:
                if event.sign != "*":  # "doubles" and "triples" are words
                    expected += [event.groups, event.amount] if event.groups else [event.amount]
        assert digits == expected


@pytest.mark.parametrize("style", STYLES)
def test_one_problem_has_many_answers_of_the_same_form(style):
    for index in range(100):
        story = parse(TASK.problem("train", index).id)
        answers = {work(story, style, Random(seed)) for seed in range(100)}
        assert len(answers) >= 3
        assert len({len(re.findall(r"\d|[a-zA-Z]+|[^\w\s]", answer)) for answer in answers}) == 1


def test_problems_name_their_manner_and_draw_all_of_them():
    drawn = Counter()
    for index in range(600):
        problem = TASK.problem("train", index)
        drawn[problem.meta["style"]] += 1
        assert problem.prompt.endswith(f" Use {problem.meta['style']}.")
    assert all(100 < drawn[style] < 200 for style in STYLES)


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("1+1=2\n#### 14", True),
        ("1+1=2\n####14", True),
        ("1+1=2\n#### 3\n#### 14", True),
        ("1+1=2\n#### 14 \nmore", True),
        ("1+1=2\n#### 014", True),
        ("1+1=2\n#### 14\n#### 3", False),
        ("14", False),
        ("####", False),
        ("1+1=2\n####\n14", False),
        ("1+1=2\n#### 14.0", False),
        ("1+1=2\n#### 14 apples", False),
        ("1+1=2\n#### -14", False),
        ("1+1=2\n#### ١٤", False),
        ("1+1=2\n#### " + "9" * 10_000, False),
        ("", False),
    ],
)
def test_scoring_is_strict(text, passed):
    problem = Problem("", "", 1, {"answer": 14})
    verdict = TASK.score(problem, text)
    assert verdict.passed is passed
    assert verdict.reason


@pytest.mark.parametrize(
    ("working", "reason"),
    [
        ("x=28\nx=28/2=14", "right"),
        ("Group: 7*2=14\nMore: 20-6=14", "right"),
        ("First 30/4=15/2.", "right"),
        ("28/2=14 pens,\n14+1=16 pens,", "not true: '14+1=16'"),
        ("x=3++6=9", "not true: '3++6=9'"),
        ("x=1442=16", "not true: '1442=16'"),
        ("5/0=14", "not true: '5/0=14'"),
        ("12345678901=12345678901", "not true: '12345678901=12345678901'"),
        ("14=", "not true: '14='"),
        ("x=14", "not true: 'no equation'"),
        ("", "not true: 'no equation'"),
    ],
)
def test_the_working_must_hold(working, reason):
    verdict = TASK.score(Problem("", "", 1, {"answer": 14}), f"{working}\n#### 14")
    assert (verdict.passed, verdict.reason) == (reason == "right", reason)

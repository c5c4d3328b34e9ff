"""longmath: every worked answer is right line by line, and scoring is strict."""

import re
from collections import Counter
from random import Random

import pytest

from xpredflow.tasks.base import Problem
from xpredflow.tasks.generated.longmath.story import EQUATIONS, LARGEST_TOTAL, parse
from xpredflow.tasks.generated.longmath.task import LongMath
from xpredflow.tasks.generated.longmath.working import STYLES, work
from xpredflow.tasks.generated.minimath.story import SMALLEST

TASK = LongMath()
EQUATION = re.compile(r"(\d+)([-+*/])(\d+)=(\d+)")


@pytest.mark.parametrize("split", ["train", "people", "test", "paraphrase"])
def test_answers_are_right_line_by_line(split):
    rng = Random(0)
    for index in range(500):
        problem = TASK.problem(split, index)
        text = TASK.answer(problem, rng)
        assert TASK.score(problem, text).passed, (problem.prompt, text)
        equations = EQUATION.findall(text)
        assert len(equations) in EQUATIONS[problem.level]
        for a, sign, b, result in equations:
            a, b, result = int(a), int(b), int(result)
            assert {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[sign] == result
            assert SMALLEST <= result <= LARGEST_TOTAL
        assert int(equations[-1][3]) == problem.meta["answer"]


@pytest.mark.parametrize("split", ["train", "people", "paraphrase"])
def test_prompts_tell_the_whole_story(split):
    for index in range(300):
        problem = TASK.problem(split, index)
        story = parse(problem.id)
        assert story.id == problem.id
        told = sorted(int(n) for n in re.findall(r"\d+", problem.prompt))
        expected = []
        for h in story.happenings:
            if h.sign not in "*t":  # "doubles" and "twice" are words
                expected += [h.groups, h.amount] if h.groups else [h.amount]
        assert told == sorted(expected)
        assert all(name.lower() in problem.prompt.lower() for name in story.names)
        if split != "people":
            assert f" {problem.meta['style']}" in problem.prompt
        # people's training requests may have a word that means nothing within "one sentence"
        first, *rest = problem.meta["style"].split()
        assert all(word in problem.prompt.partition(f" {first}")[2] for word in rest)
        assert f" {first}" in problem.prompt


def test_what_happens_between_people_counts_for_both():
    story = parse("toys Ann Ben: 0=20; 1m5@0; 0>6@1; 1-2*5; 0*2; ?all")
    formulas = [f"{e.a}{e.sign}{e.b}={e.value}" for e in story.equations()]
    assert formulas == [
        "20+5=25",
        "20-6=14",
        "25+6=31",
        "2*5=10",
        "31-10=21",
        "14*2=28",
        "28+21=49",
    ]
    assert story.answer == 49


@pytest.mark.parametrize("style", STYLES)
def test_one_problem_has_many_answers_of_the_same_form(style):
    for index in range(50):
        story = parse(TASK.problem("train", index).id)
        answers = {work(story, style, Random(seed)) for seed in range(100)}
        assert len(answers) >= 3
        assert len({len(re.findall(r"\d|[a-zA-Z]+|[^\w\s]", answer)) for answer in answers}) == 1


def test_every_sort_of_happening_is_drawn():
    stories = [parse(TASK.problem("train", index).id) for index in range(600)]
    signs = Counter(h.sign for story in stories for h in story.happenings)
    assert set(signs) == set("=+-*/>mft")
    assert {len(story.names) for story in stories} == {2, 3}
    assert any(h.groups for story in stories for h in story.happenings)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a=20\nb=20+5=25\nc=25-20=5\n#### 5", "right"),
        ("y=20\nx=20+5=25\nn=25-20=5\n#### 5", "right"),
        ("a=20\na=20+5=25\na=25-20=5\n#### 5", "right"),  # one letter that goes on
        ("a=20\nb=20+5=25\nb=20-15=5\n#### 5", "a letter for two things"),
        ("a=20\nb=20+5=24\nc=25-20=5\n#### 5", "not true"),
        ("a=20\nb=20+5=25\nc=25-20=5\n#### 6", "6 instead of 5"),
        ("the answer is 5", "no ####"),
        ("#### 5", "no equation"),
    ],
)
def test_scoring_goes_by_meaning(text, reason):
    problem = Problem("", "", 1, {"answer": 5, "style": "letters"})
    verdict = TASK.score(problem, text)
    assert verdict.passed == (reason == "right")
    assert reason in verdict.reason

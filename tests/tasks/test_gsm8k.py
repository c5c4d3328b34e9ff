"""GSM8K: LLaDA's 4-shot prompt and extraction; its own answers all grade."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from xpredflow.errors import InputError
from xpredflow.tasks import Gsm8k, prompt_of

DATA = Path(__file__).parents[3] / "shared/data"
ROW = {"question": "How many?", "answer": "1,000 * 2 = <<1000*2=2000>>2,000\n#### 2,000"}


@pytest.fixture
def task(tmp_path):
    path = tmp_path / "rows_test.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    # the file beside it, as long as the published one: the worked examples are rows of it
    (tmp_path / "rows_train.jsonl").write_text((json.dumps(ROW) + "\n") * 7473)
    return Gsm8k(path)


@pytest.fixture(scope="module")
def published():
    if not (DATA / "gsm8k_test.jsonl.gz").is_file():
        pytest.skip(f"no gsm8k_test.jsonl.gz in {DATA}")
    return Gsm8k(DATA / "gsm8k_test.jsonl.gz")


@pytest.mark.parametrize(
    ("template", "text", "passed"),
    [
        ("llada-instruct", "so 2 * 1000 = 2000", True),
        ("llada-instruct", "The answer is 2000.0", True),
        ("llada-instruct", "The answer is 2000.\nQuestion: what is 3?", True),
        ("llada-instruct", "The answer is 2000, not 3", False),
        ("llada-base", "The answer is 2000, not 3", True),
        ("llada-base", "the answer is: 2000\nQuestion: 3", True),
        ("llada-instruct", "#### 2,000", True),
        ("llada-instruct", "2,000", False),  # as published: the last number is 000
        ("llada-instruct", "minus -2000", False),
        ("zero-shot", "2001", False),
        ("zero-shot", "none", False),
        ("zero-shot", "9" * 5000, False),
    ],
)
def test_scores(task, template, text, passed):
    (problem,) = task.prompts("test", template)
    assert task.score(problem, text).passed == passed


def test_worked_examples_come_from_the_training_file(task, tmp_path):
    turns = prompt_of(task.prompts("test", "llada-instruct")[0])
    assert isinstance(turns, list)
    assert len(turns) == 9
    assert turns[1]["content"] == "1,000 * 2 = 2,000\nThe answer is 2,000\n"
    (tmp_path / "rows_train.jsonl").write_text(json.dumps(ROW) + "\n")
    with pytest.raises(InputError, match="has 1 rows, but the 4-shot prompt"):
        Gsm8k(tmp_path / "rows_test.jsonl").prompts("test", "llada-base")


def test_reasons(task):
    (problem,) = task.prompts()
    assert task.score(problem, "7").reason == "7 instead of 2000"
    assert task.score(problem, "").reason == "no number in the text"


def test_prompts_are_lladas(published):
    def digest(value):
        return sha256(value.encode()).hexdigest()[:16]

    # Of the prompt that the configuration in LLaDA's repository makes of the first question.
    chat = prompt_of(published.prompts("test", "llada-instruct")[0])
    assert digest(json.dumps(chat)) == "aba2048e19a44d74"
    assert digest(prompt_of(published.prompts("test", "llada-base")[0])) == "86493f6e082a55fb"
    assert published.response_length == 512


@pytest.mark.parametrize("template", Gsm8k.templates)
def test_own_answers_grade(published, template):
    problems = published.prompts("test", template)
    assert len(problems) == 1319
    for problem in problems:
        assert published.score(problem, published.published_answer(problem)).passed, problem.id
        assert not published.score(problem, f"#### {problem.meta['answer'] + 1}").passed
    assert len(published.prompts("train", template)) == 7473

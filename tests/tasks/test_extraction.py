"""Texts of a model are read in time linear in their length, and as LLaDA's evaluation reads them.

Every extractor reads texts that make regular expressions backtrack, each doubled again and again.
"""

import re

import pytest
from growth import assert_linear
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xpredflow.tasks.generated.minimath.task import MiniMath
from xpredflow.tasks.graders import find_choice, find_number, program_of
from xpredflow.tasks.published.code_extraction import (
    between_begin_and_done,
    first_fenced_block,
    indented_continuation,
)
from xpredflow.tasks.published.gsm8k import _after_the_answer_is, last_number

MATH = MiniMath()
PROBLEM = MATH.problem("validation", 0)
EXTRACTORS = {
    "mbpp": between_begin_and_done,
    "fence": first_fenced_block,
    "continuation": indented_continuation,
    "gsm8k": last_number,
    "gsm8k base": _after_the_answer_is,
    "number": find_number,
    "choice": lambda text: find_choice(text, "ABCD", ["one", "two", "three", "four"]),
    "program": program_of,
    "minimath": lambda text: MATH.score(PROBLEM, text),
}
PIECES = (
    *(" ", "'", "[BEGIN]", "[BEGIN] ", "[BEGIN] '", "[DONE]", " DONE", "' ", "```", "```python "),
    *(
        "```\n",
        "\n",
        "BEGIN",
        "`",
        "#### ",
        "####,",
        "1",
        "1,111",
        "+",
        "=",
        "-1.",
        "The answer is ",
    ),
    *("(A ", "A", "answer is:", "\u2028", "0+", "[", "\\_"),
)


@pytest.mark.parametrize("name", EXTRACTORS)
def test_work_grows_with_the_length_of_a_text(name: str) -> None:
    for piece in PIECES:
        for head in ("", "[BEGIN]'", "```"):
            assert_linear(EXTRACTORS[name], head, piece)


def test_quadratic_work_is_noticed() -> None:
    with pytest.raises(AssertionError, match="times the work"):
        assert_linear(re.compile(r"\s*x").search, "", " ")


def markers() -> list[re.Pattern[str]]:
    """The patterns of LLaDA's published evaluation, in its order."""
    patterns = [
        rf"{begin}\s*{body}{done}"
        for body in (r"'(.*)'\s*", r"'(.*)\s*", r"(.*)\s*")
        for done in (r"\[DONE\]", "DONE")
        for begin in (r"\[BEGIN\]", "BEGIN")
    ]
    patterns += [
        r"```python\s*(.*)\s*```",
        r"```\s*(.*)\s*```",
        r"```python\s*(.*)\s*$",
        r"```\s*(.*)\s*$",
        r"(.*)\s*```.*",
        r"\[BEGIN\]\s*'(.*)",
        r"\[BEGIN\](.*)",
        r"'(.*)'\s*\[DONE\]",
    ]
    return [re.compile(pattern, re.DOTALL) for pattern in patterns]


MARKERS = markers()


def as_published(text: str) -> str:
    found = next((match for pattern in MARKERS if (match := pattern.search(text))), None)
    text = found.group(1) if found else text
    text = re.split(r"'?\s*\[?DONE\]?", text.split("```")[0])[0]
    text = text.replace("\\_", "_").strip()
    return text.removeprefix("'").removesuffix("'")


WORDS = ["[BEGIN]", "BEGIN", "[DONE]", "DONE", "'", " ", "\n", "```", "python", "x", "[", "]", "`"]


@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join))
@settings(max_examples=3000, deadline=None)
@example("[BEGIN]BEGIN 'x' DONE")
@example("BEGIN [BEGIN] ' '[DONE")
def test_the_extraction_is_the_published_one(text: str) -> None:
    assert between_begin_and_done(text) == as_published(text)

"""How a text is graded against what a row of a file says: exact, number, choice, regex, python.

Each grader first turns the row into what grading needs, and refuses rows that it cannot grade by;
then it judges texts. Texts come from a model: reading them takes time linear in their length.
"""

import ast
import re
import string
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import regex

from xpredflow.errors import InputError
from xpredflow.tasks.base import Verdict
from xpredflow.tasks.published.code_extraction import first_fenced_block

Meta = Mapping[str, Any]
MARK = "####"
PATTERN_SECONDS = 2.0
_NUMBER = re.compile(r"(?:(?<!\d)-)?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?")
_DIGITS = 40  # longer numbers are no answers


class Fields(NamedTuple):
    """A row's fields by our names for them, and where it stands."""

    where: str
    values: Mapping[str, Any]

    def fail(self, name: str, expected: str) -> InputError:
        """The error that names file, line, field and value."""
        if self.values.get(name) is None:
            return InputError(f"{self.where}: no {name!r}: {expected}")
        return InputError(f"{self.where}: {name} is {self.values[name]!r:.60}: {expected}")


class Grader(NamedTuple):
    """What a row becomes, how a text is judged by it, and what that means in a line."""

    prepare: Callable[[Fields], dict[str, Any]]
    grade: Callable[[Meta, str], Verdict]
    about: str


def answers(fields: Fields, expected: str = "give a text, a number or a list of them") -> list[str]:
    """Every answer that counts as right."""
    value = fields.values.get("answer")
    given = value if isinstance(value, list) else [value]
    plain = all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in given)
    if not given or not plain:
        raise fields.fail("answer", expected)
    return [v if isinstance(v, str) else f"{v:.15g}" for v in given]


def _exact(fields: Fields) -> dict[str, Any]:
    right = [answer.strip() for answer in answers(fields)]
    return {"answer": right[0], "answers": right}


def _grade_exact(meta: Meta, text: str) -> Verdict:
    passed = text.strip() in meta["answers"]
    return Verdict(passed, "right" if passed else f"not {meta['answer'][:40]!r}")


def find_number(text: str) -> str | None:
    """The first number after the last ####, else the last one of the text; without commas."""
    _, mark, tail = text.rpartition(MARK)
    if mark:
        found = _NUMBER.search(tail)
        return found.group().replace(",", "") if found else None
    numbers = _NUMBER.findall(text)
    return numbers[-1].replace(",", "") if numbers else None


def _number(fields: Fields) -> dict[str, Any]:
    right = [find_number(answer) for answer in answers(fields)]
    if any(number is None or len(number) > _DIGITS for number in right):
        raise fields.fail("answer", "the grader 'number' needs a number in it")
    return {"answer": f"{MARK} {right[0]}", "answers": right}


def _grade_number(meta: Meta, text: str) -> Verdict:
    given = find_number(text)
    if given is None:
        return Verdict(False, "no number in the text")
    near = Fraction(1, 10**6)
    passed = len(given) <= _DIGITS and any(
        abs(Fraction(given) - Fraction(right)) < near for right in meta["answers"]
    )
    return Verdict(passed, "right" if passed else f"{given[:40]} instead of {meta['answers'][0]}")


def _choice(fields: Fields) -> dict[str, Any]:
    choices = fields.values.get("choices")
    if choices is not None and not (
        isinstance(choices, list) and 2 <= len(choices) <= 26 and all(map(_is_word, choices))
    ):
        raise fields.fail("choices", "give a list of 2 to 26 texts")
    texts = [str(choice).strip() for choice in choices or []]
    letters = string.ascii_uppercase[: len(texts) or 26]
    right = answers(fields)[0].strip()
    if right in texts:
        right = letters[texts.index(right)]
    if len(right) != 1 or right.upper() not in letters:
        raise fields.fail("answer", f"give a letter from A to {letters[-1]}, or one of the choices")
    return {"answer": right.upper(), "choices": texts, "letters": letters}


def _is_word(choice: Any) -> bool:
    return isinstance(choice, str | int | float) and bool(str(choice).strip())


def find_choice(text: str, letters: str, choices: list[str]) -> str | None:
    """The letter that a text settles on: alone, behind a mark, or written as (B) or B)."""
    _, marked, tail = text.rpartition(MARK)
    said = list(re.finditer(r"(?i)\banswer(?:\s{1,3}is)?\s{0,3}:?", tail))
    if said:
        tail = tail[said[-1].end() :]
    bare = tail.strip().strip("().:*'\"").strip()
    by_text = {choice.lower(): letter for choice, letter in zip(choices, letters, strict=False)}
    if bare.lower() in by_text:
        return by_text[bare.lower()]
    if len(bare) == 1 and bare.upper() in letters:
        return bare.upper()
    letter = f"([{letters[0]}-{letters[-1]}])"
    if (said or marked) and (first := re.match(rf"[\s(*]*{letter}\b", tail)):
        return first.group(1)
    written = re.findall(rf"(?<![A-Za-z0-9])\(?{letter}(?:[).:]|(?=\s*$))", tail)
    if written:
        return written[-1]
    named = [letter for choice, letter in by_text.items() if choice in tail.lower()]
    return named[0] if len(named) == 1 else None


def _grade_choice(meta: Meta, text: str) -> Verdict:
    given = find_choice(text, meta["letters"], meta["choices"])
    if given is None:
        return Verdict(False, "no choice in the text")
    passed = given == meta["answer"]
    return Verdict(passed, "right" if passed else f"{given} instead of {meta['answer']}")


def _regex(fields: Fields) -> dict[str, Any]:
    patterns = answers(fields, "give a pattern that a right answer matches")
    for pattern in patterns:
        try:
            regex.compile(pattern)
        except regex.error as error:
            raise fields.fail("answer", f"no pattern ({error}): mend it") from error
    solution = fields.values.get("solution")
    return {"patterns": patterns} | ({"answer": str(solution)} if solution is not None else {})


def _grade_regex(meta: Meta, text: str) -> Verdict:
    try:
        # patterns are the user's and may explode on a text: nothing but a clock bounds that
        passed = any(regex.search(p, text, timeout=PATTERN_SECONDS) for p in meta["patterns"])
    except TimeoutError:
        return Verdict(False, f"matching took more than {PATTERN_SECONDS:g} s")
    return Verdict(passed, "right" if passed else "no match")


_TESTS = "give asserts as code, or pairs such as [[[1, 2], 3]]: arguments and the value expected"


def _python(fields: Fields) -> dict[str, Any]:
    name, tests = fields.values.get("entry_point"), fields.values.get("tests")
    if not isinstance(name, str) or not name.isidentifier():
        raise fields.fail("entry_point", "give the name of the function that the tests call")
    if isinstance(tests, list) and tests and all(isinstance(test, str) for test in tests):
        tests = "\n".join(tests)
    if isinstance(tests, str) and tests.strip():
        _check_code(fields, "tests", tests)
        if not any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(ast.parse(tests))):
            raise fields.fail("tests", f"they never call {name!r}, the entry_point")
    elif not _are_pairs(tests):
        raise fields.fail("tests", _TESTS)
    meta: dict[str, Any] = {"entry_point": name, "tests": tests}
    setup = fields.values.get("setup")
    if setup is not None:
        if not isinstance(setup, str):
            raise fields.fail("setup", "give code that runs before the tests")
        _check_code(fields, "setup", setup)
        meta["setup"] = setup
    solution = fields.values.get("solution") or fields.values.get("answer")
    return meta | ({"answer": str(solution)} if solution is not None else {})


def _check_code(fields: Fields, name: str, code: str) -> None:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError) as error:
        raise fields.fail(name, f"not Python ({error}): mend it") from error


def _are_pairs(tests: Any) -> bool:
    return (
        isinstance(tests, list)
        and bool(tests)
        and all(isinstance(t, list) and len(t) == 2 and isinstance(t[0], list) for t in tests)
    )


def program_of(text: str) -> str:
    """The program in a text: its first fenced block, else all of it."""
    return first_fenced_block(text)


def _grade_python(meta: Meta, text: str) -> Verdict:
    raise InputError("the grader 'python' runs programs: pass run=, a sandbox's runner")


GRADERS: dict[str, Grader] = {
    "exact": Grader(_exact, _grade_exact, "the text is the answer, but for space around it"),
    "number": Grader(_number, _grade_number, "the number after ####, else the last one"),
    "choice": Grader(_choice, _grade_choice, "a letter, or one of the choices"),
    "regex": Grader(_regex, _grade_regex, "the answer is a pattern that is found in the text"),
    "python": Grader(_python, _grade_python, "tests of the program, in the sandbox"),
}

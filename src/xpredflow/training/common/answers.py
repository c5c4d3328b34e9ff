"""A model's own answers as lines of a file: what alignment learns from, what GRPO's prompts are."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError


@dataclass(frozen=True)
class Answer:
    """One prompt and what the model answered, as text and as the very tokens.

    `response_ids` hold every decoded position, those after the first end token too. `number` is
    the prompt's place in its source; `solved` is None where there is nothing to judge by; `again`
    marks a second try, at full budget.
    """

    number: int
    source: str
    prompt: str | list[dict[str, str]]
    answer: str
    prompt_ids: list[int]
    response_ids: list[int]
    passes: int
    solved: bool | None = None
    reason: str = ""
    again: bool = False

    def line(self) -> str:
        """The answer as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"


def read_answers(path: Path) -> list[Answer]:
    """Every answer in a file, by number; a last line that a kill cut short is passed over."""
    if not path.is_file():
        raise InputError(
            f"no file {str(path)!r}: write one with 'xpredflow self-generate --out {path}'"
        )
    answers = {answer.number: answer for answer in answers_in(path)}
    if not answers:
        raise InputError(f"{str(path)!r} holds no answers: run xpredflow self-generate again")
    return [answers[number] for number in sorted(answers)]


def answers_in(path: Path) -> Iterator[Answer]:
    """The answers of a file in the order they were written."""
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            value: Any = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):
                return
            raise InputError(f"{path}, line {number} is not JSON ({error})") from error
        try:
            yield Answer(**value)
        except TypeError as error:
            raise InputError(
                f"{path}, line {number} is no self-generated answer ({error}): expected the lines"
                " that xpredflow self-generate writes"
            ) from error

"""A model's own answers as lines of a file: what alignment learns from, what GRPO's prompts are."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from xpredflow.errors import InputError
from xpredflow.jsonl import as_record, read_lines, to_line


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
        return to_line(asdict(self))


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
    for number, line in enumerate(read_lines(path), start=1):
        if "steps" in line and "passes" not in line:  # what passes were called in older files
            line = {**line, "passes": line["steps"]}
            del line["steps"]
        try:
            answer = as_record(Answer, line, "its object")
        except InputError as error:
            raise InputError(
                f"{path}, line {number} is no self-generated answer ({error}): expected the lines"
                " that xpredflow self-generate writes"
            ) from error
        if min(answer.number, *answer.prompt_ids, *answer.response_ids, 0) < 0:
            raise InputError(
                f"{path}, line {number}: a number below 0 among number, prompt_ids and"
                " response_ids; it is no self-generated answer"
            )
        yield answer

"""Answers as a small checkpoint of tests/models/builders.py could have written them."""

from pathlib import Path
from random import Random

from builders import CONFIGS

from xpredflow.training.common.answers import Answer

EOS, MASK = CONFIGS["llada"]["eos_token_id"], CONFIGS["llada"]["mask_token_id"]


def own_answer(number: int, response_length: int = 16) -> Answer:
    """A prompt of 3 to 9 tokens; a text of few different tokens, then EOS to the end."""
    rng = Random(number)
    prompt = [rng.randrange(200) for _ in range(rng.randrange(3, 10))]
    text = [rng.choice((7, 8, 9)) for _ in range(rng.randrange(4, response_length - 1))]
    response = text + [EOS] * (response_length - len(text))
    return Answer(number, "toy", "prompt", "answer", prompt, response, response_length)


def own_answers(count: int) -> list[Answer]:
    return [own_answer(number) for number in range(count)]


def write_answers(path: Path, answers: list[Answer]) -> Path:
    path.write_text("".join(answer.line() for answer in answers))
    return path

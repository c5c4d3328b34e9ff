"""Prompts from arguments, a file or standard input."""

import json
import sys
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError
from xpredflow.files import parse_json

Given = str | list[dict[str, str]]

_HELP = (
    'give one as an argument (xpredflow generate "How many?"), a file with --file, or pipe one in'
    ' (echo "How many?" | xpredflow generate)'
)


def gather(arguments: list[str], file: Path | None, lines: bool) -> list[Given]:
    """The prompts of one call, from the one place they were given in."""
    if arguments and file is not None:
        raise InputError(
            f"prompts were given as arguments and in --file {file}: use one or the other"
        )
    if lines and arguments:
        raise InputError("--lines splits standard input, but prompts were given as arguments")
    if arguments:
        prompts: list[Given] = list(arguments)
    elif file is not None and str(file) != "-":
        prompts = _from_file(file)
    elif sys.stdin.isatty():
        raise InputError(f"no prompt: {_HELP}")
    else:
        prompts = _from_stdin(lines or file is not None)
    for number, prompt in enumerate(prompts):
        _check(number, prompt)
    return prompts


def label(prompt: Given) -> str:
    """A prompt as one string to show: of a conversation, what was said last."""
    return prompt if isinstance(prompt, str) else prompt[-1]["content"]


def _from_stdin(lines: bool) -> list[Given]:
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8 ({error}): convert it first") from error
    prompts: list[Given] = list(_split(text)) if lines else [text.rstrip("\n")]
    if not any(prompts):
        raise InputError(f"no prompt: standard input is empty; {_HELP}")
    return prompts


def _from_file(file: Path) -> list[Given]:
    try:
        text = file.expanduser().read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(
            f"--file {file} cannot be read ({error.strerror}): give a text file with one prompt"
            " per line, or a .jsonl file"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"--file {file} is not UTF-8 ({error}): convert it first") from error
    prompts: list[Given] = (
        [
            _from_json(f"{file}:{number}", line)
            for number, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        ]
        if file.suffix == ".jsonl"
        else list(_split(text))
    )
    if not prompts:
        raise InputError(f"--file {file} has no prompts: write one per line")
    return prompts


def _split(text: str) -> list[str]:
    # not splitlines: a prompt may well contain U+2028 or a form feed
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


def _from_json(where: str, line: str) -> Given:
    expected = 'expected {"prompt": "..."} or {"messages": [{"role": "user", "content": "..."}]}'
    try:
        record = parse_json(line)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}): {expected} per line") from error
    if not isinstance(record, dict) or ("prompt" in record) == ("messages" in record):
        raise InputError(f"{where}: {line[:60]}: {expected}")
    if "prompt" in record:
        if not isinstance(record["prompt"], str):
            raise InputError(f"{where}: prompt is {record['prompt']!r}: {expected}")
        return record["prompt"]
    if not _is_conversation(record["messages"]):
        raise InputError(f"{where}: messages are {str(record['messages'])[:60]}: {expected}")
    return record["messages"]


def _is_conversation(messages: Any) -> bool:
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(isinstance(m, dict) for m in messages)
        and all(isinstance(m.get(key), str) for m in messages for key in ("role", "content"))
    )


def _check(number: int, prompt: Given) -> None:
    """Bytes of the command line that are no UTF-8 arrive as lone surrogates."""
    try:
        json.dumps(prompt, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"prompt {number} is not valid UTF-8 ({error.reason}): convert it first"
        ) from error

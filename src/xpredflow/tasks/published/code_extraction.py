"""Finding the program in a generated text, as LLaDA's published evaluation does."""

import re
from collections.abc import Iterator

_FENCED = re.compile(r"```\w*\n(.*?)```", re.DOTALL)


def first_fenced_block(text: str) -> str:
    """The first block between ``` fences, else the whole text; leading space dropped."""
    block = _FENCED.search(text)
    return (block.group(1) if block else text).lstrip()


def indented_continuation(text: str) -> str:
    """The rest of a function body: up to three newlines, a fence, or a line at the margin."""
    if text.startswith("   ") and not text.startswith("    "):
        text = " " + text  # the tokenizer may take one space of the indentation for itself
    lines = text.split("\n\n\n")[0].split("\n```")[0].split("\n")
    end = next((i for i, line in enumerate(lines) if line and line[0] != " "), len(lines))
    return "\n".join(lines[:end])


def between_begin_and_done(text: str) -> str:
    """The program between [BEGIN] and [DONE], or what comes nearest to it."""
    text = _before_done(_between_markers(text).split("```")[0])
    text = text.replace("\\_", "_").strip()
    return text.removeprefix("'").removesuffix("'")


def _between_markers(text: str) -> str:
    """What stands between the first pair of markers in the order in which LLaDA looks for them.

    Each is found by a search from the left and one from the right: what a model writes must not be
    able to keep a regular expression busy.
    """
    pairs = [(begin, done) for done in ("[DONE]", "DONE") for begin in ("[BEGIN]", "BEGIN")]
    for between in (_quoted, _opened, _plain):
        for begin, done in pairs:
            if (found := between(text, begin, done)) is not None:
                return found
    for fence in ("```python", "```"):
        if (found := _plain(text, fence, "```")) is not None:
            return found
    for fence in ("```python", "```"):
        if fence in text:
            return text.partition(fence)[2].lstrip()
    if (quote := _quote_behind(text, "[BEGIN]")) >= 0:
        return text[quote + 1 :]
    if "[BEGIN]" in text:
        return text.partition("[BEGIN]")[2]
    first, last = text.find("'"), _last_quote_before(text, "[DONE]")
    return text[first + 1 : last] if 0 <= first < last else text


def _quoted(text: str, begin: str, done: str) -> str | None:
    """Between quotes, the first behind `begin` and the last before `done`."""
    first, last = _quote_behind(text, begin), _last_quote_before(text, done)
    return text[first + 1 : last] if 0 <= first < last else None


def _opened(text: str, begin: str, done: str) -> str | None:
    """From a quote behind `begin` to the last `done`."""
    first, last = _quote_behind(text, begin), text.rfind(done)
    return text[first + 1 : last] if 0 <= first < last else None


def _plain(text: str, begin: str, done: str) -> str | None:
    """From the first `begin` to the last `done`."""
    first, last = text.find(begin), text.rfind(done)
    if first < 0 or last < first + len(begin):
        return None
    return text[first + len(begin) : last].lstrip()


def _quote_behind(text: str, begin: str) -> int:
    """Where the first quote stands that only space parts from a `begin` before it, else -1."""
    for part in _places(text, begin):
        at = part + len(begin)
        while at < len(text) and text[at].isspace():
            at += 1
        if text[at : at + 1] == "'":
            return at
    return -1


def _last_quote_before(text: str, done: str) -> int:
    """Where the last quote stands that only space parts from a `done` behind it, else -1."""
    end = len(text)
    while (end := text.rfind(done, 0, end)) >= 0:
        at = end - 1
        while at >= 0 and text[at].isspace():
            at -= 1
        if at >= 0 and text[at] == "'":
            return at
        end = at + 1
    return -1


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _before_done(text: str) -> str:
    """The text before the first DONE, less what opens it: a bracket, space and a quote."""
    head, done, _ = text.partition("DONE")
    return head.removesuffix("[").rstrip().removesuffix("'") if done else text

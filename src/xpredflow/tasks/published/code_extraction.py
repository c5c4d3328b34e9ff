"""Finding the program in a generated text, as LLaDA's published evaluation does."""

import re

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


def _between_markers() -> list[re.Pattern[str]]:
    bodies = (r"'(.*)'\s*", r"'(.*)\s*", r"(.*)\s*")
    patterns = [
        rf"{begin}\s*{body}{done}"
        for body in bodies
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


_MARKERS = _between_markers()


def between_begin_and_done(text: str) -> str:
    """The program between [BEGIN] and [DONE], or what comes nearest to it."""
    found = next((match for pattern in _MARKERS if (match := pattern.search(text))), None)
    text = found.group(1) if found else text
    text = re.split(r"'?\s*\[?DONE\]?", text.split("```")[0])[0]
    text = text.replace("\\_", "_").strip()
    return text.removeprefix("'").removesuffix("'")

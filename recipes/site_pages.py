"""Writes what the documentation takes from elsewhere: lines of source, and llms.txt.

    python recipes/site_pages.py

A page names the lines that it shows,

    <!-- source: flow.py | x_next = torch.lerp -->
    <!-- source: flow.py | reedited = live | t_next = torch.where(reedited -->

by the beginning of one line, or of the first and the last; a fenced block with them follows, and
this script keeps it as the source has it. `make docs` runs it; a test fails where it was forgotten.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from xpredflow.files import write_atomically

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOB = "https://github.com/xpredflow/xpredflow/blob/main"
SOURCE = re.compile(
    r"^<!-- source: (\S+) \| ([^\n]+) -->\n(?:\[[^\n]*\n)?\n```py\n.*?^```$", re.M | re.S
)
ENOUGH = 50  # characters that say something of a page
INTRODUCTION = """\
# xpredflow

> Python library and command line for continuous decoding of masked diffusion language models
> (LLaDA, LLaDA2 and their kin): x-prediction flow, eighteen other decoders in the same engine,
> alignment, learned step-size policies, graded evaluation with forward passes counted.

Everything runs offline with the embedded model `tiny-aligned`. Python: `from xpredflow import
generate, load`. Command line: `xpredflow --help`."""


def main() -> None:
    """Write what is out of date, and say so."""
    for file, text in wanted().items():
        if not file.is_file() or file.read_text() != text:
            write_atomically(file, text)
            print(f"{file.relative_to(ROOT)}: brought up to date")


def wanted() -> dict[Path, str]:
    """Every page with lines of source, and llms.txt, as they should be."""
    pages = {page: page.read_text() for page in sorted(DOCS.rglob("*.md"))}
    shown = {page: refreshed(text) for page, text in pages.items() if SOURCE.search(text)}
    return {**shown, DOCS / "llms.txt": llms_text()}


def refreshed(page: str) -> str:
    """A page with its blocks of source replaced by what stands there now."""
    return SOURCE.sub(lambda found: block(found[1], found[2]), page)


def block(file: str, lines: str) -> str:
    """The marker, a link to the lines and the lines themselves."""
    path = Path("src/xpredflow") / file
    source = (ROOT / path).read_text().splitlines()
    first, *rest = (place(source, part.strip(), path) for part in lines.split(" | "))
    last = rest[0] if rest else first
    label = f"lines {first + 1} to {last + 1}" if rest else f"line {first + 1}"
    link = f"[{file}, {label}]({BLOB}/{path}#L{first + 1}" + (f"-L{last + 1})" if rest else ")")
    code = dedent("\n".join(source[first : last + 1]))
    return f"<!-- source: {file} | {lines} -->\n{link}\n\n```py\n{code}\n```"


def place(source: list[str], beginning: str, path: Path) -> int:
    """The one line that begins so."""
    found = [at for at, line in enumerate(source) if line.strip().startswith(beginning)]
    if len(found) != 1:
        raise SystemExit(f"{path}: {len(found)} lines begin with {beginning!r}, expected one")
    return found[0]


def llms_text() -> str:
    """The site's pages for language models (llmstxt.org): a line each, in the order of the menu."""
    parts, section = [INTRODUCTION], ""
    for group, title, page in entries():
        if group != section:
            parts.append(f"\n## {group}\n")
            section = group
        parts.append(f"- [{title}]({BLOB}/docs/{page}): {summary(DOCS / page)}")
    return "\n".join(parts) + "\n"


def entries() -> Iterator[tuple[str, str, str]]:
    """Section, title and file of every page of the menu."""
    for title, below in (pair for entry in menu() for pair in entry.items()):
        if isinstance(below, str):
            yield "First", title, below
        else:
            yield from ((title, *pair) for entry in below for pair in entry.items())


def menu() -> list[dict[str, Any]]:
    """`nav` of mkdocs.yml."""
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]


def summary(page: Path) -> str:
    """The first sentence below the title, or the first few where it says little."""
    for paragraph in page.read_text().split("\n\n")[1:]:
        text = " ".join(paragraph.split())
        if text and not text.startswith(("#", "<", "!", "```", "|", "- ", ":::")):
            plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text).replace("**", "")
            said = ""
            for sentence in re.split(r"(?<=[.:]) (?=[A-Z`])", plain):
                said = f"{said} {sentence}".strip()
                if len(said) >= ENOUGH:
                    break
            return said.rstrip(".:") + "."
    return page.stem


if __name__ == "__main__":
    main()

"""An index of viewer pages: one line per request, with what became of it under each decoder."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xpredflow.files import write_atomically
from xpredflow.watch.picture import passes
from xpredflow.watch.trace import Recording
from xpredflow.watch.viewer import part, style_policy


@dataclass(frozen=True)
class Entry:
    """A page, what it is called, and the recordings on it."""

    file: str
    name: str
    recordings: Sequence[Recording]


def write_index(path: Path, title: str, notes: Sequence[str], entries: Sequence[Entry]) -> Path:
    """One HTML file with a link to each page; entries with the same decoders share a table."""
    style = part("style.css") + part("index.css")
    tables: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        tables.setdefault(tuple(one.title for one in entry.recordings), []).append(entry)
    body = "".join(f"<p>{html.escape(note)}</p>\n" for note in notes)
    body += "".join(_table(titles, group) for titles, group in tables.items())
    write_atomically(
        path,
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{style_policy(style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n{body}</body>\n</html>\n",
    )
    return path


def _table(titles: Sequence[str], entries: Sequence[Entry]) -> str:
    head = "".join(f'<th scope="col">{_breakable(name)}</th>' for name in ("request", *titles))
    rows = "".join(_row(entry) for entry in entries)
    return (
        f'<table class="index">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n'
    )


def _breakable(name: str) -> str:
    """A decoder with its options, to be broken before one of them and not within a word."""
    return html.escape(name).replace("+", "<wbr>+").replace(",", ",<wbr>")


def _row(entry: Entry) -> str:
    prompt = entry.recordings[0].prompt_text
    link = f'<a href="{html.escape(entry.file)}">{html.escape(entry.name)}</a>'
    cells = "".join(_cell(one) for one in entry.recordings)
    return f"<tr><td>{link}<br>{html.escape(prompt[:200])}</td>{cells}</tr>\n"


def _cell(recording: Recording) -> str:
    verdict, used = recording.verdict, passes(recording.passes)
    if verdict is None:
        return f"<td>{used}</td>"
    kind, word = ("right", "✓ right") if verdict.passed else ("wrong", "✗ wrong")
    why = "" if verdict.passed else f"<br>{html.escape(verdict.reason[:120])}"
    return f'<td><strong class="{kind}">{word}</strong>, {used}{why}</td>'

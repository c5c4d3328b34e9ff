"""Traces as one self-contained HTML page, which plays them side by side without any request.

write_page("page.html", read_traces("run.jsonl"))

The page's parts lie in watch/page. It is handed the lines of the traces, compressed; the page that
a server sends gets the same lines from it as they come.
"""

import base64
import hashlib
import html
import os
import re
import zlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from xpredflow.errors import InputError
from xpredflow.files import write_atomically
from xpredflow.watch.trace import Trace
from xpredflow.watch.trace_encoder import encode

MOST_COLUMNS = 4
SCRIPTS = ("trace.js", "answer.js", "heatmap.js", "details.js", "player.js")


def write_page(path: str | Path, traces: Sequence[Trace], title: str = "") -> Path:
    """Write the page of some traces; those of one prompt stand side by side."""
    path = page_path(path)
    write_atomically(path, build_page(traces, title))
    return path


def build_page(traces: Sequence[Trace], title: str = "") -> str:
    """The page's text."""
    check_columns(traces)
    lines = "".join(line + "\n" for trace in traces for line in encode(trace))
    packed = base64.b64encode(zlib.compress(lines.encode(), 7)).decode()
    trace = f'<script type="text/plain" id="trace">{packed}</script>\n'
    return _filled(title, part("style.css"), "recorded.js", trace=trace)[0]


def build_live_page() -> tuple[str, str]:
    """The page of a server, which decodes what it is asked to; and the policy it stands under."""
    style = part("style.css") + part("live.css")
    return _filled("", style, "live.js", form=part("ask.html"), policy="; connect-src 'self'")


def _filled(
    title: str, style: str, main: str, *, form: str = "", trace: str = "", policy: str = ""
) -> tuple[str, str]:
    script = "\n".join(map(part, (*SCRIPTS, main)))
    # whatever gets into the page, only this script and this style are obeyed
    rules = f"{style_policy(style)}; script-src '{digest(script)}'{policy}"
    filled = {
        "TITLE": html.escape(title or "xpredflow: how an answer settles"),
        "POLICY": rules,
        "STYLE": style,
        "FORM": form,
        "SCRIPT": script,
        "TRACE": trace,
    }
    # in one go: what is filled in may itself look like a place to fill in
    return re.sub("%([A-Z]+)%", lambda place: filled[place[1]], part("page.html")), rules


def check_columns(traces: Sequence[Trace]) -> None:
    """There must be something to show, and room for it."""
    prompts = [str(one.prompt) for trace in traces for one in trace.recordings() if one.frames]
    if not prompts:
        raise InputError("no pass was recorded: nothing to show; record the trace again")
    for prompt in dict.fromkeys(prompts):
        if prompts.count(prompt) > MOST_COLUMNS:
            raise InputError(
                f"{prompts.count(prompt)} recordings of the prompt {prompt[:40]!r}: at most"
                f" {MOST_COLUMNS} stand side by side; give fewer traces"
            )


def page_path(path: str | Path) -> Path:
    """Where a page may be written, or an error."""
    path = Path(path).expanduser()
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"page {str(path)!r}: name a file that ends in .html")
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"page {str(path)!r} cannot be written there: choose another place")
    return path


def style_policy(style: str) -> str:
    """A policy under which nothing is loaded and only this style sheet is obeyed."""
    rules = ("default-src 'none'", "base-uri 'none'", "form-action 'none'")
    return "; ".join((*rules, f"style-src '{digest(style)}'"))


def part(name: str) -> str:
    """A file of watch/page."""
    return (files("xpredflow.watch") / "page" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Of a part of a page, as its policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

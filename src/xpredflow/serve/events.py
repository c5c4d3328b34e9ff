"""A request's answers as server-sent events.

Text that can no longer change goes out as ordinary chunks. A draft is an event named `draft` whose
data is a chunk without choices: readers of unnamed events never see it, and clients that make no
difference find nothing to print in it.
"""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from xpredflow.serve.answers import Style, usage_of
from xpredflow.serve.following import Following, News, Result

DONE = "data: [DONE]\n\n"
ALIVE = ": still decoding\n\n"


def event(data: dict[str, Any], name: str | None = None) -> str:
    """One event; JSON escapes line breaks, so the data is one line."""
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n"


async def answer_events(
    following: Following,
    style: Style,
    n: int,
    *,
    usage: bool,
    drafts: bool,
    on_text: Callable[[], None],
    on_end: Callable[[list[Result]], None],
) -> AsyncIterator[str]:
    """Every event of a stream, in the rate in which they are asked for."""
    sent, results = [""] * len(following.jobs), {}
    for i in range(len(sent)):
        opening = style.opening(i)
        if opening is not None:
            yield event(opening)
    async for news in following.news():
        if news is None:
            yield ALIVE
            continue
        i = news.index
        more = news.text[len(sent[i]) :]
        if more:
            sent[i] = news.text
            on_text()
            yield event(style.delta(i, more))
        if drafts and news.result is None:
            yield event(_draft(style, news), "draft")
        if news.result is not None:
            results[i] = news.result
            yield event(style.closing(i, news.result))
    found = [results[i] for i in range(len(sent))]
    on_end(found)
    if usage:
        total = usage_of(following.prompt_tokens, n, found)
        yield event(style.chunk([], usage=total.model_dump()))
    yield DONE


def _draft(style: Style, news: News) -> dict[str, Any]:
    draft = {"index": news.index, "settled": news.text, "draft": news.draft, "passes": news.passes}
    return style.chunk([], draft=draft)

"""All rows of one request, followed together to their ends."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from xpredflow.serve.feed import Backend, Feed
from xpredflow.serve.jobs import Committed, Filled, Job, Update
from xpredflow.serve.replies import FinishReason

PULSE = 15.0  # seconds without news after which a stream says that it is alive


@dataclass(frozen=True)
class Result:
    """The answer of a row as it is given out: cut where a stop text begins."""

    text: str
    tokens: int
    passes: int
    finish_reason: FinishReason
    stop_reason: str
    committed: list[Committed] | None = None
    slots: list[Filled] | None = None


@dataclass(frozen=True)
class News:
    """What is new of a row: its text so far, a draft of the rest, and at last the result."""

    index: int
    text: str
    draft: str
    passes: int
    result: Result | None = None


class Following:
    """The feeds of a request; `close` gives up every row that is not done."""

    def __init__(self, backend: Backend, jobs: Sequence[Job], stops: tuple[str, ...]) -> None:
        self.jobs, self.stops = jobs, stops
        self.prompt_tokens = [0] * len(jobs)
        self._feeds: list[Feed] = []
        self._newest: list[Update | None] = [None] * len(jobs)
        self._pending: dict[asyncio.Task[Update], int] = {}
        try:
            for job in jobs:
                self._feeds.append(backend.open(job))
        except BaseException:
            self.close()
            raise

    async def accept(self) -> None:
        """Wait until every row is accepted; what is wrong with one is raised here."""
        for i, feed in enumerate(self._feeds):
            update = await feed.next()
            self.prompt_tokens[i], self._newest[i] = update.prompt_tokens, update

    async def results(self) -> list[Result]:
        """The answers, when all are there."""
        found: dict[int, Result] = {}
        async for news in self.news():
            if news is not None and news.result is not None:
                found[news.index] = news.result
        return [found[i] for i in range(len(self.jobs))]

    async def news(self) -> AsyncIterator[News | None]:
        """What is new of any row, as fast as it is asked for; None when there was long nothing."""
        for i, update in enumerate(self._newest):
            if update is not None and update.done is not None:  # accepted and done at once
                yield self._news(i, update)
            else:
                self._ask(i)
        while self._pending:
            done, _ = await asyncio.wait(
                self._pending, timeout=PULSE, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                yield None
            for task in done:
                i = self._pending.pop(task)
                news = self._news(i, task.result())
                if news.result is None:
                    self._ask(i)
                else:
                    self._feeds[i].close()
                yield news

    def close(self) -> None:
        """Nobody waits any more."""
        for task in self._pending:
            task.cancel()
        for feed in self._feeds:
            feed.close()

    def _ask(self, i: int) -> None:
        self._pending[asyncio.ensure_future(self._feeds[i].next())] = i

    def _news(self, i: int, update: Update) -> News:
        done, cut = update.done, _first_stop(update.settled, self.stops)
        if done is not None:
            text = done.text if cut is None else done.text[:cut]
            committed = done.committed
            if cut is not None and committed is not None:
                committed = _within(committed, cut)
            length_left = cut is not None or done.ended
            result = Result(
                text=text,
                tokens=done.tokens,
                passes=done.passes,
                finish_reason="stop" if length_left else "length",
                stop_reason=done.stop_reason,
                committed=committed,
                slots=done.slots,
            )
            return News(i, text, "", done.passes, result)
        if cut is not None and self.jobs[i].logprobs is None:
            text = update.settled[:cut]
            why = "a stop text was settled"
            result = Result(text, update.tokens, update.passes, "stop", why)
            return News(i, text, "", update.passes, result)
        end = len(update.settled) - _held_back(update.settled, self.stops) if cut is None else cut
        return News(i, update.settled[:end], update.settled[end:] + update.draft, update.passes)


def _first_stop(text: str, stops: tuple[str, ...]) -> int | None:
    """Where the first stop text begins."""
    return min((at for stop in stops if (at := text.find(stop)) >= 0), default=None)


def _held_back(text: str, stops: tuple[str, ...]) -> int:
    """How many characters at the end may be the beginning of a stop text."""
    longest = max(map(len, stops), default=1) - 1
    for size in range(min(longest, len(text)), 0, -1):
        if any(stop.startswith(text[-size:]) for stop in stops):
            return size
    return 0


def _within(committed: list[Committed], end: int) -> list[Committed]:
    """The tokens that begin before a place in the text."""
    kept, length = [], 0
    for token in committed:
        if length >= end:
            break
        kept.append(token)
        length += len(token.chosen.token)
    return kept

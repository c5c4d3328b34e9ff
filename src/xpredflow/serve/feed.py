"""What a row reports, from the model's thread to the event loop: only the newest is kept.

The model's thread never waits for a reader. One that is slow misses what lay between; since settled
text only ever grows, it misses no text. Lines of a trace wait for it, up to a bound.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol

from xpredflow.serve.jobs import Job, RowFailed, Update

MOST_UNREAD = 2**24  # characters of a trace that may wait for its reader


class Feed(Protocol):
    """A row as the server follows it."""

    async def next(self) -> Update:
        """The newest update that was not read yet; what went wrong is raised."""
        ...

    def close(self) -> None:
        """Nobody listens any more: a row that is not done is given up before the next pass."""
        ...


class Backend(Protocol):
    """What decodes jobs: this process, or several."""

    name: str

    def open(self, job: Job) -> Feed:
        """Hand a job in; it is accepted with the first update, or refused by an exception."""
        ...

    def check(self) -> None:
        """Raise if nothing can be decoded any more."""
        ...

    def stop(self) -> None:
        """Give up whatever is left."""
        ...


class Mailbox:
    """A feed with room for one update; a newer one replaces it."""

    def __init__(self, on_close: Callable[["Mailbox"], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._lock = threading.Lock()
        self._newest: Update | Exception | None = None
        self._on_close = on_close
        self._unread = 0
        self.closed = False

    def put(self, news: Update | Exception) -> None:
        """Replace what was not read; called by the model's thread."""
        with self._lock:
            earlier, waiting = self._newest, self._newest is not None
            if isinstance(news, Update):
                self._unread += sum(map(len, news.lines))
                news = news.behind(earlier) if isinstance(earlier, Update) else news
            if self._unread > MOST_UNREAD:
                news = RowFailed("the trace is read more slowly than it is made")
            self._newest = news
        if not waiting and not self.closed:
            try:
                self._loop.call_soon_threadsafe(self._filled.set)
            except RuntimeError:  # the event loop has ended, and with it whoever listened
                self.closed = True
        if self._unread > MOST_UNREAD:
            self.close()

    async def next(self) -> Update:
        await self._filled.wait()
        with self._lock:
            news, self._newest, self._unread = self._newest, None, 0
            self._filled.clear()
        assert news is not None
        if isinstance(news, Exception):
            raise news
        return news

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._on_close(self)

"""A server in a thread of the tests' own process, reached over a real socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from xpredflow.engine.engine import Engine
from xpredflow.serve.app import Desk
from xpredflow.serve.background import serving
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.feed import Backend

PENS = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


@dataclass
class Running:
    """A server that answers at `url`."""

    url: str
    engine: Engine
    desk: Desk

    def post(self, path: str = CHAT, timeout: float = 60, **body: Any) -> httpx.Response:
        """One request, by a client of its own."""
        return httpx.post(self.url + path, json=body, timeout=timeout)

    def chat(self, content: str = PENS, **body: Any) -> dict[str, Any]:
        """The answer to one message; it must be one."""
        response = self.post(messages=[{"role": "user", "content": content}], **body)
        assert response.status_code == 200, response.text
        return response.json()

    def refused(self, path: str = CHAT, **body: Any) -> tuple[int, str]:
        """Status and message of a request that is turned away."""
        message = [{"role": "user", "content": PENS}]
        beside = {"messages": message} if path == CHAT else {}
        response = self.post(path, **{**beside, **body})
        return response.status_code, response.json()["error"]["message"]


@contextmanager
def running(engine: Engine, backend: Backend | None = None, **settings: Any) -> Iterator[Running]:
    """Serve an engine while the block runs."""
    with serving(engine, ServeConfig(port=0, **settings), backend) as server:
        yield Running(server.url, engine, server.desk)

"""A server in a thread of the tests' own process, reached over a real socket."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from xpredflow.engine.engine import Engine
from xpredflow.serve.app import Desk, make_app
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.feed import Backend
from xpredflow.serve.metrics import Metrics
from xpredflow.serve.server import Draining, listen, served_by
from xpredflow.serve.worker import ModelThread, bounds_of

PENS = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


@dataclass
class Running:
    """A server that answers at `url`."""

    url: str
    engine: Engine
    desk: Desk
    server: Draining

    def post(self, path: str = CHAT, **body: Any) -> httpx.Response:
        """One request, by a client of its own."""
        return httpx.post(self.url + path, json=body, timeout=60)

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
    config = ServeConfig(port=0, **settings)
    listener, metrics = listen(config), Metrics(config.max_batch)
    thread = backend or ModelThread(
        engine,
        max_batch=config.max_batch,
        bounds=bounds_of(config),
        on_pass=metrics.on_pass,
    )
    app = make_app(thread, served_by(engine), config, metrics)
    server = Draining(uvicorn.Config(app, log_config=None, access_log=False), app.state.desk)
    serving = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    serving.start()
    while not server.started:
        time.sleep(0.01)
    host, port = listener.getsockname()[:2]
    try:
        yield Running(f"http://{host}:{port}", engine, app.state.desk, server)
    finally:
        server.should_exit = True
        serving.join()

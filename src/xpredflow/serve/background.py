"""A server in a thread of this process: for notebooks, scripts and tests."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from xpredflow.engine.engine import Engine
from xpredflow.serve.app import Desk, make_app
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.feed import Backend
from xpredflow.serve.metrics import Metrics
from xpredflow.serve.server import Draining, listen, served_by
from xpredflow.serve.worker import ModelThread, bounds_of


@dataclass(frozen=True)
class Serving:
    """A server that answers at `url`, and what it does."""

    url: str
    desk: Desk


@contextmanager
def serving(
    engine: Engine, config: ServeConfig | None = None, backend: Backend | None = None
) -> Iterator[Serving]:
    """Serve an engine while the block runs, at any free port unless told which.

    with serving(Engine(load("tiny-aligned"))) as server:
        httpx.get(f"{server.url}/v1/models")
    """
    config = config or ServeConfig(port=0)
    listener = listen(config)
    metrics = getattr(backend, "metrics", None) or Metrics(config.max_batch)
    backend = backend or ModelThread(
        engine,
        max_batch=config.max_batch,
        bounds=bounds_of(config),
        on_pass=metrics.on_pass,
    )
    app = make_app(backend, served_by(engine), config, metrics)
    server = Draining(uvicorn.Config(app, log_config=None, access_log=False), app.state.desk)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    host, port = listener.getsockname()[:2]
    try:
        yield Serving(f"http://{host}:{port}", app.state.desk)
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def in_background(engine: Engine, given: Sequence[str] = ()) -> Iterator[str]:
    """The address of a server: the one that was given, or one that runs while the block does."""
    if given:
        yield given[0].rstrip("/")
        return
    with serving(engine) as server:
        yield server.url

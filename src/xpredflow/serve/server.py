"""A server from a model and settings, and its life: load, listen, drain, end."""

import logging
import signal
import socket
import sys
from types import FrameType

import uvicorn

from xpredflow.engine.engine import Engine
from xpredflow.errors import InputError
from xpredflow.serve.access import JsonLines
from xpredflow.serve.app import Desk, make_app
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.metrics import Metrics
from xpredflow.serve.requests import Served
from xpredflow.serve.worker import ModelThread, bounds_of

_log = logging.getLogger("xpredflow.serve")


def served_by(engine: Engine) -> Served:
    """What an engine serves, under the name of its model."""
    defaults = getattr(engine.model, "defaults", None)
    decoder = engine.decoder if isinstance(engine.decoder, str) else None
    named = decoder or getattr(defaults, "decoder", None)
    return Served(engine.model.name, engine.model.max_length, named)


def serve(engine: Engine, config: ServeConfig | None = None) -> None:
    """Serve an engine until SIGTERM or Ctrl-C; open requests are answered before it returns.

    serve(Engine(load("tiny-aligned"), decoder="threshold:0.9"), ServeConfig(port=8000))
    """
    config = config or ServeConfig()
    serve_on(listen(config), engine, config)


def serve_on(listener: socket.socket, engine: Engine, config: ServeConfig) -> None:
    """The same on a socket that is there already."""
    metrics = Metrics(config.max_batch)
    thread = ModelThread(
        engine,
        max_batch=config.max_batch,
        bounds=bounds_of(config),
        on_pass=metrics.on_pass,
    )
    run(make_app(thread, served_by(engine), config, metrics), config, listener)


def listen(config: ServeConfig) -> socket.socket:
    """The socket; a port that is taken is said before anything is loaded."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host.strip("[]"), config.port), family=family)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {config.host}:{config.port} ({error}): choose another host or port"
        ) from None


def run(app: object, config: ServeConfig, listener: socket.socket) -> None:
    """Answer requests until a signal; then those that are open, and no others."""
    log_to_stderr()
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    _log.info("listening on http://%s:%d", shown, port)
    settings = uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=config.drain_seconds,
    )
    Draining(settings, app.state.desk).run(sockets=[listener])  # type: ignore[attr-defined]
    _log.info("stopped")


class Draining(uvicorn.Server):
    """A server that turns new requests away from the moment it is asked to end."""

    def __init__(self, config: uvicorn.Config, desk: Desk) -> None:
        super().__init__(config)
        self.desk = desk

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.desk.admission.draining = True
        _log.info("draining: %d answers are under way", self.desk.admission.rows)
        # a second Ctrl-C does not wait; unlike uvicorn's own, the signal is not raised again: the
        # server has ended as it was told to, which is no failure
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def log_to_stderr() -> None:
    """Every line of the server's log as JSON, once."""
    if not _log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        _log.addHandler(handler)
        _log.setLevel(logging.INFO)
        _log.propagate = False

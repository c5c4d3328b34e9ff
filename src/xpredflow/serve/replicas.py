"""A backend of several processes or machines: replicas of the model in a Ray cluster.

The API stays in this process and hands each row to a replica; what the row reports streams back,
and closing its feed cancels it there. A row whose replica dies is decoded once more elsewhere:
since an answer depends on its request alone, whoever reads it sees it go on.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import ray
import torch
from ray import serve
from ray.exceptions import RayError

from xpredflow.engine.engine import Engine
from xpredflow.errors import InputError
from xpredflow.models import embedded
from xpredflow.serve.app import make_app
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.feed import Mailbox
from xpredflow.serve.jobs import Job, RowFailed, Update
from xpredflow.serve.metrics import Load, Metrics
from xpredflow.serve.requests import Served
from xpredflow.serve.server import run, served_by
from xpredflow.serve.tracks import Bounds
from xpredflow.serve.worker import ModelThread, bounds_of

_log = logging.getLogger("xpredflow.serve")
ATTEMPTS = 2
READY_SECONDS = 600.0  # to load the weights

Report = Update | InputError | RowFailed


class Replica:
    """A model with its thread, in a process of its own."""

    def __init__(
        self,
        source: dict[str, Any],
        decoder: str | None,
        options: dict[str, Any],
        max_batch: int,
        bounds: Bounds,
    ) -> None:
        model = embedded.load(**{"source": embedded.DEFAULT, "device": None, **source})
        self.engine = Engine(model, decoder=decoder, **options)
        self.load = Load(uuid4().hex)
        self.thread = ModelThread(
            self.engine, max_batch=max_batch, bounds=bounds, on_pass=self._on_pass
        )

    def _on_pass(self, running: int, waiting: int) -> None:
        self.load = self.load.after(running, waiting)

    async def decode(self, job: Job) -> AsyncIterator[tuple[Load, Report]]:
        """What the row reports, beside what the replica does.

        An error is handed back as it is, not as one of Ray's.
        """
        feed = self.thread.open(job)
        try:
            while True:
                update = await feed.next()
                yield self.load, update
                if update.done is not None:
                    return
        except (InputError, RowFailed) as error:
            yield self.load, error
        finally:
            feed.close()

    def served(self) -> Served:
        """What it serves."""
        return served_by(self.engine)

    def check_health(self) -> None:
        """Ray replaces a replica whose thread has ended."""
        self.thread.check()


class ReplicaBackend:
    """Rows go to whichever replica Ray chooses."""

    def __init__(self, handle: Any, name: str, metrics: Metrics) -> None:
        self.name, self.metrics = name, metrics
        self._handle = handle.options(stream=True)
        self._pumps: set[asyncio.Task[None]] = set()

    def open(self, job: Job) -> Mailbox:
        """Hand a job in; a task of the event loop follows it."""

        def give_up(box: Mailbox) -> None:
            pump.cancel()

        mailbox = Mailbox(give_up)
        pump = asyncio.ensure_future(self._follow(job, mailbox))
        self._pumps.add(pump)  # the event loop itself would not keep it
        pump.add_done_callback(self._pumps.discard)
        return mailbox

    def check(self) -> None:
        """Ray looks after the replicas."""

    def stop(self) -> None:
        """They end with the deployment."""

    async def _follow(self, job: Job, mailbox: Mailbox) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            reports = self._handle.decode.remote(job)
            try:
                async for load, report in reports:
                    self.metrics.on_load(load)
                    mailbox.put(report)
                    if not isinstance(report, Update) or report.done is not None:
                        return
            except asyncio.CancelledError:
                reports.cancel()
                raise
            except RayError as error:
                _log.warning("attempt %d: a replica was lost (%s)", attempt, type(error).__name__)
        mailbox.put(RowFailed(f"{ATTEMPTS} replicas were lost while the row was decoded"))


def deploy(
    source: dict[str, Any],
    decoder: str | None,
    options: dict[str, Any],
    config: ServeConfig,
    replicas: int,
) -> tuple[ReplicaBackend, Served]:
    """Start the replicas, in the cluster that RAY_ADDRESS names or in one of this machine."""
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.WARNING)
    serve.start(http_options={"location": "NoServer"})
    deployment = serve.deployment(Replica).options(
        name="replica",
        num_replicas=replicas,
        max_ongoing_requests=config.capacity,
        ray_actor_options={"num_cpus": 1, "num_gpus": int(torch.cuda.is_available())},
    )
    made = deployment.bind(source, decoder, options, config.max_batch, bounds_of(config))
    handle = serve.run(made, name="xpredflow", route_prefix=None)
    served = handle.served.remote().result(timeout_s=READY_SECONDS)
    metrics = Metrics(config.max_batch * replicas)
    return ReplicaBackend(handle, served.name, metrics), served


def serve_replicas(
    source: dict[str, Any],
    decoder: str | None,
    options: dict[str, Any],
    config: ServeConfig,
    listener: socket.socket,
    replicas: int,
) -> None:
    """The API in front of several replicas, until SIGTERM or Ctrl-C."""
    backend, served = deploy(source, decoder, options, config, replicas)
    room = {"max_batch": config.max_batch * replicas, "max_queue": config.max_queue * replicas}
    bounds = replace(config, **room)
    try:
        run(make_app(backend, served, bounds, backend.metrics), bounds, listener)
    finally:
        serve.shutdown()
        ray.shutdown()

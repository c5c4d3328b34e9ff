"""What /metrics says, in the words of Prometheus."""

from collections.abc import Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from xpredflow.serve.following import Result
from xpredflow.serve.jobs import Finished

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
PASSES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Load(NamedTuple):
    """What a replica says of itself: counts since it began, and its newest pass."""

    replica: str
    batches: int = 0
    passes: int = 0
    running: int = 0
    waiting: int = 0

    def after(self, running: int, waiting: int) -> "Load":
        """One more pass."""
        return Load(self.replica, self.batches + 1, self.passes + running, running, waiting)


class Metrics:
    """Counters of one server; each has a registry of its own."""

    def __init__(self, max_batch: int) -> None:
        self.max_batch, self.registry = max_batch, CollectorRegistry()
        self.loads: dict[str, Load] = {}
        self._rows = 0
        of = {"registry": self.registry, "namespace": "xpredflow"}
        self.requests = Counter("requests", "Requests by status.", ["route", "status"], **of)
        self.seconds = Histogram("request_seconds", "Time.", ["route"], buckets=SECONDS, **of)
        self.first_text = Histogram(
            "first_text_seconds", "Time to the first settled text.", buckets=SECONDS, **of
        )
        self.batches = Counter("batches", "Forward passes of the batch.", **of)
        self.passes = Counter("passes", "Forward passes of rows.", **of)
        self.fill = Gauge("batch_fill", "Rows of the newest pass over max_batch; idle: 0.", **of)
        self.running = Gauge("rows_running", "Rows in the newest pass; idle: 0.", **of)
        self.waiting = Gauge("rows_waiting", "Rows that wait for a place.", **of)
        self.accepted = Gauge("rows_accepted", "Rows accepted and not answered.", **of)
        self.prompt_tokens = Counter("prompt_tokens", "Tokens of prompts.", **of)
        self.tokens = Counter("tokens", "Tokens of answers.", **of)
        self.per_answer = Histogram("answer_passes", "Passes of an answer.", buckets=PASSES, **of)

    def on_rows(self, rows: int) -> None:
        """So many rows are accepted and not answered."""
        self._rows = rows
        self.accepted.set(rows)

    def on_pass(self, running: int, waiting: int) -> None:
        """A forward pass of so many rows."""
        self.batches.inc()
        self.passes.inc(running)
        self.fill.set(running / self.max_batch)
        self.running.set(running)
        self.waiting.set(waiting)

    def on_load(self, load: Load) -> None:
        """What a replica has done in all so far, and what it does now."""
        before = self.loads.get(load.replica, Load(load.replica))
        if load.batches < before.batches:  # reports of several rows may overtake each other
            return
        self.loads[load.replica] = load
        self.batches.inc(load.batches - before.batches)
        self.passes.inc(load.passes - before.passes)
        running = sum(one.running for one in self.loads.values())
        self.fill.set(running / self.max_batch)
        self.running.set(running)
        self.waiting.set(sum(one.waiting for one in self.loads.values()))

    def on_answers(self, results: Sequence[Result | Finished], prompt_tokens: int) -> None:
        """A request is answered."""
        self.prompt_tokens.inc(prompt_tokens)
        for result in results:
            self.tokens.inc(result.tokens)
            self.per_answer.observe(result.passes)

    def written(self) -> bytes:
        """All of it as text; where nobody waits for an answer, the newest pass is history."""
        if not self._rows:
            for gauge in (self.fill, self.running, self.waiting):
                gauge.set(0)
        return generate_latest(self.registry)

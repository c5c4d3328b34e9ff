"""How many rows are accepted at once; who comes too late is told when to come again."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from time import monotonic

from xpredflow.serve.failures import Refused
from xpredflow.serve.metrics import Metrics


class Admission:
    """Counts rows from their acceptance to their answer."""

    def __init__(self, capacity: int, metrics: Metrics) -> None:
        self.capacity, self.metrics = capacity, metrics
        self.rows = 0
        self.draining = False
        self._seconds_per_row = 0.1

    @contextmanager
    def places(self, count: int) -> Iterator[None]:
        """Room for so many rows, or a refusal."""
        if self.draining:
            raise Refused(503, "draining", "the server is shutting down", Retry_After="5")
        if count > self.capacity:
            raise Refused(
                400, "too_many_rows", f"{count} answers are asked for: at most {self.capacity} fit"
            )
        if self.rows + count > self.capacity:
            wait = max(1, ceil(self._seconds_per_row * self.rows))
            raise Refused(
                429,
                "queue_full",
                f"{self.rows} answers are under way and at most {self.capacity} may be: try again"
                f" in {wait} s",
                Retry_After=str(min(wait, 60)),
            )
        began = monotonic()
        self._count(count)
        try:
            yield
        finally:
            # how long a place is taken, over all that were taken beside it
            spent = (monotonic() - began) / max(self.rows, 1)
            self._seconds_per_row += 0.1 * (spent - self._seconds_per_row)
            self._count(-count)

    def _count(self, change: int) -> None:
        self.rows += change
        self.metrics.on_rows(self.rows)

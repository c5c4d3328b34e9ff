"""The sandbox: a pool of workers behind `run`, `submit` and `map`."""

import ast
import builtins
import os
import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from xpredflow.errors import InputError, unknown_name
from xpredflow.sandbox.inside.judge import Request
from xpredflow.sandbox.inside.limits import Limits
from xpredflow.sandbox.inside.values import NotPlain, dump
from xpredflow.sandbox.launcher import BOX_BYTES, ISOLATIONS, Unavailable
from xpredflow.sandbox.worker import Worker, WorkerDied
from xpredflow.tasks.base import Runner, Verdict

SECONDS = 3.0
MEMORY = 512 * 2**20
RETRIES = 1  # of a run whose worker was killed


@dataclass(frozen=True)
class Job:
    """One program and its tests: pairs of arguments and expected value, or the code of a suite.

    A suite sees the program's `names` (by default those it uses and does not define itself), and
    the entry point under each of `aliases` too. `setup` is trusted code that runs before it.
    """

    program: str
    tests: str | Sequence[Sequence[Any]]
    entry_point: str | None = None
    setup: str = ""
    names: Sequence[str] | None = None
    aliases: Sequence[str] = ()
    timeout: float = SECONDS

    def request(self) -> bytes:
        """The judge's Request, as it is sent."""
        suite = self.tests if isinstance(self.tests, str) else ""
        pairs = None if isinstance(self.tests, str) else [list(pair) for pair in self.tests]
        names = list(names_used(suite, self.setup) if self.names is None else self.names)
        entry_point = self.entry_point or (names[0] if names else None)
        if entry_point is None:
            raise InputError("the tests call no name of the program: pass entry_point=")
        names = [entry_point, *(name for name in names if name != entry_point)]
        aliases = dict.fromkeys(self.aliases, entry_point)
        request = Request(self.program, names, pairs, self.setup, suite, aliases)
        try:
            return dump(list(request))
        except NotPlain as error:
            raise InputError(f"the program or its tests hold {error}") from error


def names_used(suite: str, setup: str = "") -> list[str]:
    """The names that trusted tests use and neither define nor find among the builtins."""
    used: dict[str, None] = {}
    defined: set[str] = set(dir(builtins))
    for node in ast.walk(ast.parse(f"{setup}\n{suite}")):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used[node.id] = None
        elif isinstance(node, ast.Name):
            defined.add(node.id)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.alias):
            defined.add((node.asname or node.name).split(".")[0])
    return [name for name in used if name not in defined]


@dataclass
class _Seat:
    """A thread and the worker it drives."""

    started: Future[None] = field(default_factory=Future)
    thread: threading.Thread | None = None
    worker: Worker | None = None


class Sandbox:
    """Runs programs that nobody trusts.

    with Sandbox(workers=2) as box:
        box.run("def f(x):\n    return x + 1", [[[1], 2]], entry_point="f")
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        unsafe: bool = False,
        isolation: str | None = None,
        memory: int = MEMORY,
    ) -> None:
        if isolation is not None and isolation not in ISOLATIONS:
            raise unknown_name("isolation", isolation, ISOLATIONS)
        if isolation == "none" and not unsafe:
            raise InputError(
                "isolation 'none' runs programs with your own rights: pass unsafe=True"
            )
        self._memory = memory
        self._jobs: queue.SimpleQueue[tuple[bytes, Limits, Future[Verdict]] | None]
        self._jobs = queue.SimpleQueue()
        self._seats: list[_Seat] = []
        self._closed = False
        self.isolation = self._open(isolation, unsafe)
        try:
            for _ in range((workers or len(os.sched_getaffinity(0))) - 1):
                self._seat(self.isolation)
        except BaseException:
            self.close()
            raise

    def _open(self, isolation: str | None, unsafe: bool) -> str:
        """Start the first worker in the strongest way that works here."""
        reasons = []
        for name in [isolation] if isolation else ISOLATIONS[: None if unsafe else -1]:
            try:
                self._seat(name)
                return name
            except Unavailable as error:
                reasons.append(f"{name}: {error}")
        raise InputError(
            "programs written by a model run in a sandbox only, and this machine has none "
            f"({'; '.join(reasons)}). Install bubblewrap, or pass --unsafe-code-execution "
            "(unsafe=True) to run them with your own rights"
        )

    def _seat(self, isolation: str) -> None:
        seat = _Seat()
        # The thread starts its own worker: bwrap dies with the thread that started it.
        seat.thread = threading.Thread(target=self._work, args=(seat, isolation), daemon=True)
        seat.thread.start()
        seat.started.result()
        self._seats.append(seat)

    def run(self, program: str, tests: str | Sequence[Sequence[Any]], **options: Any) -> Verdict:
        """Grade one program; the options are those of Job."""
        return self.submit(Job(program, tests, **options)).result()

    def submit(self, job: Job) -> "Future[Verdict]":
        """Grade in the background; any thread may call this."""
        if self._closed:
            raise InputError("this sandbox is closed")
        future: Future[Verdict] = Future()
        limits = Limits(float(job.timeout), self._memory, BOX_BYTES // 2)
        self._jobs.put((job.request(), limits, future))
        return future

    def map(self, jobs: Iterable[Job]) -> list[Verdict]:
        """Grade all, with every worker busy; the verdicts come in the order of the jobs."""
        futures = [self.submit(job) for job in jobs]
        return [future.result() for future in futures]

    @property
    def runner(self) -> Runner:
        """What a task's `score` takes as `run`."""
        return lambda program, meta: self.submit(job_of(program, meta)).result()

    def pids(self) -> list[int]:
        """The workers' processes, for those who watch or kill them."""
        return [seat.worker.pid for seat in self._seats if seat.worker]

    def close(self) -> None:
        """Finish what was submitted, then end every worker."""
        self._closed = True
        for _ in self._seats:
            self._jobs.put(None)
        for seat in self._seats:
            if seat.thread:
                seat.thread.join()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _work(self, seat: _Seat, isolation: str) -> None:
        try:
            seat.worker = Worker(isolation)
        except BaseException as error:
            seat.started.set_exception(error)
            return
        seat.started.set_result(None)
        while job := self._jobs.get():
            request, limits, future = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(_grade(seat, isolation, request, limits))
                except BaseException as error:
                    future.set_exception(error)
        seat.worker.close()


def _grade(seat: _Seat, isolation: str, request: bytes, limits: Limits) -> Verdict:
    reason = ""
    for _ in range(1 + RETRIES):
        if seat.worker is None or seat.worker.closed:
            seat.worker = Worker(isolation)
        try:
            return seat.worker.run(request, limits)
        except WorkerDied as error:
            reason = str(error)
            seat.worker.close()
    return Verdict(False, f"{reason}, {1 + RETRIES} times in a row")


def job_of(program: str, meta: Mapping[str, Any]) -> Job:
    """The job behind a problem's `meta`."""
    known = {"entry_point", "tests", "setup", "names", "aliases", "timeout"}
    return Job(program, **{key: value for key, value in meta.items() if key in known})

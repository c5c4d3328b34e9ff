"""The warm parent: it forks a candidate and a judge for each run and cleans up after them.

It reads only the limits of a run. Program and tests go from the host straight to the judge, so
that a candidate, being a copy of this process, finds neither the tests nor earlier programs in
its memory.
"""

import contextlib
import gc
import importlib
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

from . import candidate, judge, landlock, limits, root
from .channel import Channel
from .limits import Limits
from .seccomp import Filter
from .values import dump, load

# Imported once here, not in each run.
PRELOADED = """
bisect cmath collections copy datetime functools heapq itertools math operator random re string
time typing
"""
REQUESTS, RESULTS = 3, 4  # file descriptors; a candidate's channel takes their places
JUDGE_GRACE = 2.0  # seconds beyond the run's own for tests that compute on the values
JUDGE_MEMORY = 2**30
LOOK_AGAIN = 20.0  # milliseconds between two counts of them


class Settings:
    """How this sandbox is closed; filled in from the command line by the host.

    `box` is where programs may write; under Landlock, the directory of the standard library.
    """

    def __init__(self, isolation: str, uid: int, readable: list[str], box: str) -> None:
        self.isolation, self.uid, self.readable, self.box = isolation, uid, readable, box


def main(isolation: str, uid: str, box: str, *readable: str) -> None:
    settings = Settings(isolation, int(uid), list(readable), box)
    _move_pipes()
    for name in PRELOADED.split():
        importlib.import_module(name)
    seal = _close_down(settings)
    gc.collect()
    gc.freeze()  # the collector would touch, and so copy, every page in every child
    _report(b"R", {"uid": os.getuid()})
    os.dup2(1, 2)
    while header := os.read(REQUESTS, Limits.PACKED.size):
        run(Limits.unpack(header), seal, settings.box)


def _move_pipes() -> None:
    """Keep the host's pipes away from the numbers that print() and input() use."""
    os.dup2(0, REQUESTS)
    os.dup2(1, RESULTS)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.closerange(RESULTS + 1, 256)


def _close_down(settings: Settings) -> Callable[[], None]:
    """Give up what no process in here needs; returns what each candidate must do on top."""
    if settings.isolation == "landlock":
        root.hide_all_but(settings.readable)  # or Landlock alone, which hides no names
        limits.drop_capabilities()  # root's own, and those that a namespace gives to anybody
        landlock.restrict_to_reading(settings.readable, [settings.box])
        settings.box = ""  # no place to write
    elif settings.isolation == "bubblewrap" and settings.uid != os.getuid():
        os.chmod(settings.box, 0o777)
        limits.become(settings.uid)
    limits.die_with_parent()  # after the change of user, which clears it
    if settings.isolation == "none":
        os.chdir(settings.box)  # not wherever the host happens to be
        return _seal_if_possible
    return Filter(read_only=settings.isolation == "landlock").install


def _seal_if_possible() -> None:
    """Unsafe is not careless: without the filter, root's fork bomb takes the machine down."""
    with contextlib.suppress(OSError):
        Filter().install()


def run(allowed: Limits, seal: Callable[[], None], box: str) -> None:
    """One run: fork both, wait for the judge, end the candidate, wipe, report."""
    to_candidate, from_candidate = os.pipe(), os.pipe()
    runner = os.fork()
    if not runner:
        _be_candidate(to_candidate[0], from_candidate[1], allowed, seal)
    decider = os.fork()
    if not decider:
        _be_judge(from_candidate[0], to_candidate[1], to_candidate[0], from_candidate[1], allowed)
    for fd in (*to_candidate, *from_candidate):
        os.close(fd)
    files = _Files(box)
    decided, late = _wait(decider, allowed.seconds + JUDGE_GRACE, runner, files)
    for kill in (os.kill, os.killpg):  # a process that is already ending keeps its own status
        with contextlib.suppress(ProcessLookupError):
            kill(runner, signal.SIGKILL)
    status = os.waitpid(runner, 0)[1]
    ended = {"judge": decided, "late": late, "candidate": status, "files": files.too_many}
    _report(b"D", {**ended, "clean": _wipe(box)})


def _be_candidate(reader: int, writer: int, allowed: Limits, seal: Callable[[], None]) -> None:
    try:
        limits.die_with_parent()
        os.setsid()  # a group of its own, so that one signal ends it with all it may have started
        os.dup2(reader, REQUESTS)
        os.dup2(writer, RESULTS)
        os.closerange(RESULTS + 1, 256)
        limits.apply(allowed)
        channel = Channel(REQUESTS, RESULTS)
        seal()
        candidate.main(channel)
    finally:
        os._exit(1)


def _be_judge(reader: int, writer: int, *theirs_and_limits: Any) -> None:
    *theirs, allowed = theirs_and_limits
    try:
        limits.die_with_parent()
        for fd in theirs:
            os.close(fd)
        limits.apply(allowed._replace(seconds=allowed.seconds + 1, memory=JUDGE_MEMORY))
        request = judge.Request(*load(Channel(REQUESTS, RESULTS).receive()))
        _report(b"V", judge.main(request, reader, writer, allowed.seconds))
        os._exit(0)
    finally:
        os._exit(1)


class _Files:
    """How many files a run makes: a limit on bytes does not count the empty ones."""

    def __init__(self, box: str) -> None:
        self.box, self.too_many = box, False
        self.before = self._used()

    def _used(self) -> int:
        if not self.box:
            return 0
        if not os.path.ismount(self.box):  # without isolation: others use that disk too
            return len(os.listdir(self.box))
        found = os.statvfs(self.box)
        return found.f_files - found.f_ffree

    def check(self) -> bool:
        """Whether it made more than it may; asked now and then."""
        self.too_many = self.too_many or self._used() - self.before > limits.MOST_FILES
        return self.too_many


def _wait(pid: int, seconds: float, runner: int, files: _Files) -> tuple[int, bool]:
    """The exit status of the judge, which gets so much time, and whether that was too little."""
    end = time.monotonic() + seconds
    descriptor = os.pidfd_open(pid)
    waiter = select.poll()
    waiter.register(descriptor, select.POLLIN)
    late = False
    while not waiter.poll(min(LOOK_AGAIN, max(0.0, end - time.monotonic()) * 1000)):
        late = time.monotonic() >= end
        if late:
            os.kill(pid, signal.SIGKILL)
            break
        if not files.too_many and files.check():
            os.kill(runner, signal.SIGKILL)
    os.close(descriptor)
    _, status, used = os.wait4(pid, 0)
    # the kernel ends it for its time as well, and nobody else is told why
    return status, late or used.ru_utime + used.ru_stime >= seconds - 1


def _wipe(box: str) -> bool:
    """Remove what the run left. False where that is more than plain files: start afresh then."""
    if not box:
        return True
    try:
        os.chmod(box, 0o777) if os.stat(box).st_uid == os.getuid() else None
        left = os.listdir(box)
        for name in left[:100]:
            os.unlink(os.path.join(box, name))
        return len(left) <= 100
    except OSError:
        return False


def _report(kind: bytes, value: Any) -> None:
    message = dump(list(value) if isinstance(value, tuple) else value)
    data = kind + len(message).to_bytes(4, "little") + message
    while data:
        data = data[os.write(RESULTS, data) :]

"""The host's side of one worker: a process that grades one program after another."""

import os
import select
import signal
import subprocess
import time
from contextlib import ExitStack
from typing import Any

from xpredflow.sandbox.inside.asking import ENDED, TIMED_OUT
from xpredflow.sandbox.inside.candidate import OUT_OF_MEMORY
from xpredflow.sandbox.inside.limits import MOST_FILES, Limits
from xpredflow.sandbox.inside.values import MAX_BYTES, load
from xpredflow.sandbox.launcher import Unavailable, command
from xpredflow.tasks.base import Verdict

START_SECONDS = 30.0
LONGEST_REASON = 400  # characters
TOO_MANY_FILES = f"the program made more than {MOST_FILES} files"
GRACE_SECONDS = 10.0  # beyond the run's own, before a silent worker counts as dead


class WorkerDied(Exception):
    """The worker was killed, hangs, or broke off; a new one can take over."""


class Worker:
    """Starts in the thread that uses it: the process dies with the thread that started it."""

    def __init__(self, isolation: str) -> None:
        self._resources = ExitStack()
        words, environment = command(isolation, self._resources)
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for the program, which then closes the sandbox
        )
        assert self._process.stdin
        assert self._process.stdout
        self._requests = self._process.stdin.fileno()
        self._results = self._process.stdout.fileno()
        try:
            kind, _ = self._receive(time.monotonic() + START_SECONDS)
        except WorkerDied as error:
            self._process.kill()
            said = self._process.stderr.read() if self._process.stderr else b""
            self.close()
            lines = said.decode(errors="replace").strip().splitlines()
            raise Unavailable(lines[-1] if lines else str(error)) from error
        assert kind == b"R"

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, message: bytes, limits: Limits) -> Verdict:
        """The verdict on a judge's Request, or WorkerDied."""
        deadline = time.monotonic() + limits.seconds + GRACE_SECONDS
        self._send(limits.pack(), deadline)
        self._send(len(message).to_bytes(4, "little") + message, deadline)
        verdict = None
        kind, body = self._receive(deadline)
        if kind == b"V":
            verdict = body
            kind, body = self._receive(deadline)
        if not body["clean"]:
            self.close()  # the caller starts a new worker, with a new empty directory
        if verdict is None:
            self.close()  # what the judge has not read is still in the pipe
            if body["files"]:
                return Verdict(False, TOO_MANY_FILES)
            if body["late"]:
                return Verdict(False, f"timed out after {limits.seconds} s, in the tests")
            raise WorkerDied(f"the judge was killed{_by(body['judge'])}, perhaps for memory")
        passed, reason = verdict
        if body["files"]:
            return Verdict(False, TOO_MANY_FILES)
        return Verdict(passed is True, plain(_in_words(reason, body["candidate"], limits)))

    @property
    def closed(self) -> bool:
        return self._process.returncode is not None

    def close(self) -> None:
        """End the process and wait for it. Its namespaces, mounts and files go with it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                stream.close()
        self._resources.close()

    def _send(self, data: bytes, deadline: float) -> None:
        os.set_blocking(self._requests, False)
        view = memoryview(data)
        while view:
            self._wait(self._requests, select.POLLOUT, deadline)
            try:
                view = view[os.write(self._requests, view) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise WorkerDied("the worker was killed") from error

    def _receive(self, deadline: float) -> tuple[bytes, Any]:
        head = self._exactly(5, deadline)
        length = int.from_bytes(head[1:], "little")
        if length > MAX_BYTES:
            raise WorkerDied(f"the worker sent {length} bytes")
        return head[:1], load(self._exactly(length, deadline))

    def _exactly(self, count: int, deadline: float) -> bytes:
        data = b""
        while len(data) < count:
            self._wait(self._results, select.POLLIN, deadline)
            part = os.read(self._results, count - len(data))
            if not part:
                raise WorkerDied("the worker was killed")
            data += part
        return data

    def _wait(self, fd: int, event: int, deadline: float) -> None:
        waiter = select.poll()
        waiter.register(fd, event)
        if not waiter.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise WorkerDied("the worker does not answer")


def plain(reason: str) -> str:
    """A reason on one short line, whatever a program has put into it."""
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in reason[: 2 * LONGEST_REASON])
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 3] + "..."


def _by(status: int) -> str:
    return f" by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else ""


def _in_words(reason: str, status: int, limits: Limits) -> str:
    """The judge's reason; how the program's process ended is known here only."""
    if reason == TIMED_OUT:
        return f"timed out after {limits.seconds} s"
    if reason != ENDED:
        return reason
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        if code == OUT_OF_MEMORY:
            return "out of memory"
        return f"the program ended its process (status {code}) before the tests were done"
    number = os.WTERMSIG(status)
    if number in (signal.SIGKILL, signal.SIGXCPU):
        return "the program was killed: it closed its channel, or used too much CPU or memory"
    return f"the program crashed with {signal.Signals(number).name}"

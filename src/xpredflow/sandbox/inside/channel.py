"""Messages over a pair of pipes, with one deadline for all of them."""

import os
import select
import struct
import time

from .values import MAX_BYTES, Malformed

_LENGTH = struct.Struct("<I")


class Ended(Exception):
    """The other side closed its end: it exited or was killed."""


class TimedOut(Exception):
    """The deadline passed."""


class Channel:
    """Length-prefixed messages; the deadline is a `time.monotonic()`, None waits for ever."""

    def __init__(self, reader: int, writer: int, deadline: float | None = None) -> None:
        self._reader, self._writer, self._deadline = reader, writer, deadline
        self._read = b""  # what has arrived of the next messages
        # A writer that blocks on a reader who never reads would miss the deadline.
        os.set_blocking(writer, deadline is None)
        self._polls = {}
        for fd, event in ((reader, select.POLLIN), (writer, select.POLLOUT)):
            self._polls[fd] = select.poll()
            self._polls[fd].register(fd, event)

    def send(self, message: bytes) -> None:
        data = _LENGTH.pack(len(message)) + message
        while data:
            try:
                data = data[os.write(self._writer, data) :]
            except BlockingIOError:
                self._wait(self._writer)
            except BrokenPipeError as error:
                raise Ended from error

    def receive(self) -> bytes:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > MAX_BYTES:
            raise Malformed(f"a message of {length} bytes")
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        parts, have = [self._read], len(self._read)
        while have < count:
            self._wait(self._reader)
            # More than is asked for: a short message comes whole with its length, in one read.
            parts.append(os.read(self._reader, 65536))
            if not parts[-1]:
                raise Ended
            have += len(parts[-1])
        data = b"".join(parts)
        self._read = data[count:]
        return data[:count]

    def _wait(self, fd: int) -> None:
        if self._deadline is None:
            return  # the file descriptor blocks by itself
        left = self._deadline - time.monotonic()
        if left <= 0 or not self._polls[fd].poll(left * 1000):
            raise TimedOut

"""Who a process inside the sandbox is, and how much it may use."""

import ctypes
import math
import os
import resource
import signal
import struct
from typing import NamedTuple

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_CAPABILITY_VERSION_3 = 0x20080522
MOST_FILES = 1000  # that one run may make
_libc = ctypes.CDLL(None, use_errno=True)


class Limits(NamedTuple):
    """What one run may use."""

    seconds: float
    memory: int  # bytes of address space
    file_size: int  # bytes of one file

    PACKED = struct.Struct("<dQQ")

    def pack(self) -> bytes:
        return self.PACKED.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> "Limits":
        return cls(*cls.PACKED.unpack(data))


def become(uid: int) -> None:
    """Drop from root to a user that owns nothing; all capabilities go with it."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_capabilities() -> None:
    """Root without its powers, where there is no other user that could read Python's files."""
    header, nothing = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    if _libc.capset(header, nothing):
        raise OSError(ctypes.get_errno(), "capset")


def die_with_parent() -> None:
    """Be killed when the parent is; and let nobody under the same user look into the memory."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def apply(limits: Limits) -> None:
    """Set the resource limits of this process, for good."""
    seconds = math.ceil(limits.seconds) + 1  # the deadline comes first; this is the net below it
    for kind, amount in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits.file_size),
        # One process exists already, so every fork is over the limit. Not counted for root:
        # there the system call filter alone forbids it.
        (resource.RLIMIT_NPROC, 1),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(kind, (amount, amount))

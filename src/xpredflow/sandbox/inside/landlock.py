"""Landlock: from here on this process opens nothing but the named files. Needs Linux 5.13."""

import ctypes
import os
import struct
from collections.abc import Iterable

from .seccomp import PR_SET_NO_NEW_PRIVS

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# How many file rights an ABI version knows; each version handles all it knows, and grants reading.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_RIGHTS_NOW = 16

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """The kernel's Landlock ABI, 0 where there is none."""
    return max(0, _libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG))


def restrict_to_reading(paths: Iterable[str], listed: Iterable[str] = ()) -> None:
    """Deny every file but these (directories with all beneath), and allow these to be read only.

    Of the directories in `listed` the names of files can be seen as well, and nothing more.
    """
    abi = version()
    if not abi:
        raise OSError("this kernel has no Landlock")
    files = (1 << _RIGHTS.get(abi, _RIGHTS_NOW)) - 1
    network = 3 if abi >= 4 else 0  # TCP bind and connect
    scopes = 3 if abi >= 6 else 0  # abstract unix sockets and signals to the outside
    attributes = struct.pack("<QQQ", files, network, scopes)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _call(_CREATE_RULESET, attributes, size, 0)
    both = _READ_FILE | _READ_DIR
    granted = [(path, both if os.path.isdir(path) else _READ_FILE) for path in paths]
    for path, rights in [*granted, *((path, _READ_DIR) for path in listed)]:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("<Qi", rights, beneath), 0)
        os.close(beneath)
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _call(number: int, *arguments: bytes | int) -> int:
    result = _libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result

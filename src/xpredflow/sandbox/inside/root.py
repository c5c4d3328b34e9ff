"""A root of our own: where namespaces are allowed, files that may not be read are not even there.

Landlock refuses to open a file but does not hide it: `stat`, and the kind of refusal, tell whether
there is one of that name. No system call filter can help, as it sees addresses and not paths.
"""

import ctypes
import os
from collections.abc import Iterable

_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_SAFE = 0x2 | 0x4 | 0x8  # no set-user-id, no devices, no programs
_PLACE = "/proc"  # is there on every Linux, and nothing that may be read lies below it

_libc = ctypes.CDLL(None, use_errno=True)


def hide_all_but(paths: Iterable[str]) -> bool:
    """Leave nothing but these files and directories; False where this system does not allow it."""
    try:
        _enter_namespaces()
        _call("mount", None, b"/", None, _RECURSIVE | _PRIVATE, None)
        _call("mount", b"tmpfs", _PLACE.encode(), b"tmpfs", _SAFE, b"size=4m,mode=0755")
        for path in paths:
            _show(path)
    except OSError:
        return False
    _call("chroot", _PLACE.encode())
    os.chdir("/")
    return True


def _enter_namespaces() -> None:
    uid, gid = os.getuid(), os.getgid()
    if _libc.unshare(_NEW_USER | _NEW_MOUNTS):
        _call("unshare", _NEW_MOUNTS)  # root may, where users may not
        return
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _show(path: str) -> None:
    """Mount it at its own place below the new root; a library with the links that lead to it."""
    there = _PLACE + path
    os.makedirs(os.path.dirname(there), exist_ok=True)
    if os.path.isdir(path):
        os.makedirs(there, exist_ok=True)
    else:
        os.close(os.open(there, os.O_CREAT | os.O_WRONLY, 0o644))
    _call("mount", path.encode(), there.encode(), None, _BIND | _RECURSIVE, None)
    folder, name = os.path.split(path)
    stem, is_library, _ = name.partition(".so")
    beside = [os.path.join(folder, link) for link in os.listdir(folder)] if is_library else []
    for link in beside:
        leads_here = link.startswith(f"{folder}/{stem}.so") and os.path.realpath(link) == path
        if leads_here and link != path and not os.path.lexists(_PLACE + link):
            os.symlink(path, _PLACE + link)


def _call(name: str, *arguments: bytes | int | None) -> None:
    if getattr(_libc, name)(*arguments):
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")

"""The system calls a candidate may make: a list of what is allowed, everything else fails.

One process with one thread, no signals to others, no sockets, no programs, no new mappings of
devices. This also protects the judge, which runs under the same user.
"""

import ctypes
import os
import platform
import struct

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _EACCES, _ENOSYS = 0x00050001, 0x0005000D, 0x00050026
_NEWER = 424  # from here on numbers are shared by all architectures; libc probes for ENOSYS

# name: (x86_64, aarch64); None where the architecture has only the newer variant.
_CALLS: dict[str, tuple[int | None, int]] = {
    # memory
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    # reading and writing what is open, or what the mounts (or Landlock) let it open
    "read": (0, 63),
    "readv": (19, 65),
    "pread64": (17, 67),
    "write": (1, 64),
    "writev": (20, 66),
    "pwrite64": (18, 68),
    "lseek": (8, 62),
    "close": (3, 57),
    "dup": (32, 23),
    "dup3": (292, 24),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "faccessat": (269, 48),
    "readlinkat": (267, 78),
    "getdents64": (217, 61),
    "ftruncate": (77, 46),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "mkdirat": (258, 34),
    "unlinkat": (263, 35),
    "renameat2": (316, 276),
    "ppoll": (271, 73),
    "pselect6": (270, 72),
    # time, itself, randomness
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "times": (100, 153),
    "getrusage": (98, 165),
    "getrandom": (318, 278),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    # what libc and the interpreter do by themselves
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "futex": (202, 98),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
_OLD_X86 = {  # the forms without "at", which only x86_64 still has
    "stat": 4,
    "lstat": 6,
    "access": 21,
    "dup2": 33,
    "readlink": 89,
    "mkdir": 83,
    "rmdir": 84,
    "unlink": 87,
    "rename": 82,
    "poll": 7,
    "select": 23,
    "time": 201,
    "arch_prctl": 158,
}
_FCNTL = {"x86_64": 72, "aarch64": 25}
# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC. Not F_SETOWN: it signals other processes.
_FCNTL_COMMANDS = (0, 1, 2, 3, 1030)
_OPEN, _OPENAT = {"x86_64": 2}, {"x86_64": 257, "aarch64": 56}
# Any way of opening but for reading: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_TMPFILE's own bit.
_WRITING = 0o3 | 0o100 | 0o1000 | 0o20000000
_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_OFFSET_NUMBER, _OFFSET_ARCH = 0, 4
_OFFSET_SECOND_ARGUMENT, _OFFSET_THIRD_ARGUMENT = 24, 32

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


class Filter:
    """The compiled filter; built once by the warm parent and installed by each candidate.

    With `read_only`, files are opened for reading only: a Landlock before Linux 6.2 does not know
    of truncation, and would let a file that may be read be emptied.
    """

    def __init__(self, read_only: bool = False) -> None:
        self._code = b"".join(_instructions(platform.machine(), read_only))
        self._program = _Program(len(self._code) // 8, self._code)

    def install(self) -> None:
        """From here on this process is under the filter. There is no way back."""
        pointer = ctypes.byref(self._program)
        if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or _libc.prctl(
            PR_SET_SECCOMP, SECCOMP_MODE_FILTER, pointer, 0, 0
        ):
            raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _instructions(machine: str, read_only: bool) -> list[bytes]:
    if machine not in _ARCH:
        raise OSError(f"no seccomp filter for {machine}: only for {', '.join(_ARCH)}")
    x86 = machine == "x86_64"
    numbers = [pair[0] if x86 else pair[1] for pair in _CALLS.values()]
    numbers += _OLD_X86.values() if x86 else []
    code = [
        _op(_LOAD, _OFFSET_ARCH),
        _op(_JEQ, _ARCH[machine], 1),
        _op(_RETURN, _KILL),
        _op(_LOAD, _OFFSET_NUMBER),
    ]
    for number in numbers:
        if number is not None:
            code += [_op(_JEQ, number, 0, 1), _op(_RETURN, _ALLOW)]
    commands = [_op(_LOAD, _OFFSET_SECOND_ARGUMENT)]
    for command in _FCNTL_COMMANDS:
        commands += [_op(_JEQ, command, 0, 1), _op(_RETURN, _ALLOW)]
    code += _guarded(_FCNTL[machine], [*commands, _op(_RETURN, _EPERM)])
    for names, offset in ((_OPEN, _OFFSET_SECOND_ARGUMENT), (_OPENAT, _OFFSET_THIRD_ARGUMENT)):
        if machine in names:
            refuse = [_op(_LOAD, offset), _op(_JSET, _WRITING, 0, 1), _op(_RETURN, _EACCES)]
            code += _guarded(names[machine], (refuse if read_only else []) + [_op(_RETURN, _ALLOW)])
    return [*code, _op(_JGE, _NEWER, 0, 1), _op(_RETURN, _ENOSYS), _op(_RETURN, _EPERM)]


def _guarded(number: int, decide: list[bytes]) -> list[bytes]:
    """For one system call what `decide` says, which looks at arguments and always returns."""
    return [_op(_JEQ, number, 0, len(decide)), *decide]

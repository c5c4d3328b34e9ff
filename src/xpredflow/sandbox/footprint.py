"""What a set of processes holds: how a leak is found."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Footprint(NamedTuple):
    """Of some processes and all below them, and the descriptors of this process too."""

    processes: int
    memory: int  # bytes, resident and not shared with a file
    descriptors: int


def children(pid: int) -> list[int]:
    """All processes below this one."""
    found = []
    for entry in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in entry.read_text().split():
            found += [int(child), *children(int(child))]
    return found


def footprint(pids: Iterable[int]) -> Footprint:
    """Now. A process that has just ended counts as none."""
    everyone = [below for pid in pids for below in (pid, *children(pid))]
    descriptors = len(os.listdir("/proc/self/fd"))
    return Footprint(len(everyone), sum(_anonymous(pid) for pid in everyone), descriptors)


def _anonymous(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0

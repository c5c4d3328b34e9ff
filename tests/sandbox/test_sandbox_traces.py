"""Runs leave no process, file, file descriptor or memory behind. (10,000: benchmarks/sandbox.py)"""

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import attacks
import pytest
from requirements import require

from xpredflow.sandbox import Sandbox
from xpredflow.sandbox.footprint import children, footprint

ROOT = Path(__file__).parents[2]
NOBODY = 65534


def test_many_runs_leave_nothing_behind(box):
    programs = [attacks.HONEST, attacks.OS_EXIT, attacks.LITTER, "def f(x):\n    return x"]

    def runs(count):
        for i in range(count):
            box.run(programs[i % len(programs)], [[[1], 2]], entry_point="f")

    runs(20)
    before = footprint(box.pids())
    runs(200)
    after = footprint(box.pids())
    assert after.processes == before.processes
    assert after.descriptors == before.descriptors
    assert after.memory - before.memory < 2**20


def test_closing_ends_every_process():
    before = children(os.getpid())
    with Sandbox(workers=2) as box:
        assert len(children(os.getpid())) > len(before)
        assert box.run(attacks.HONEST, [[[1], 2]], entry_point="f").passed
    assert set(children(os.getpid())) <= set(before)


def test_a_killed_host_takes_its_workers_along():
    require("bubblewrap")
    code = (
        "import os, signal; from xpredflow.sandbox import Sandbox; box = Sandbox(workers=1); "
        "from xpredflow.sandbox.footprint import children; print(*children(os.getpid()), "
        "flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    pids = [int(pid) for pid in output.split()]
    assert pids
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        assert select.select([descriptor], [], [], 10)[0], f"process {pid} survived"
        os.close(descriptor)


def ordinary_python() -> str:
    """A Python that an ordinary user can run; the one under /root is none."""
    for python in (os.path.realpath(sys.executable), shutil.which("python3", path="/usr/bin:/bin")):
        check = "import sys, xpredflow.sandbox; assert sys.version_info >= (3, 11)"
        try:
            if python and as_nobody(python, check).returncode == 0:
                return python
        except PermissionError:
            continue
    pytest.skip("no Python >= 3.11 on this machine that an ordinary user may run")


def as_nobody(python: str, code: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests/sandbox'}",
        "PATH": "/usr/bin:/bin",
    }
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(
        [python, "-c", code],
        env=environment,
        cwd="/",
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.skipif(os.getuid() != 0, reason="this whole run is as an ordinary user already")
@pytest.mark.parametrize("isolation", ["bubblewrap", "landlock"])
def test_the_same_walls_for_an_ordinary_user(isolation):
    require(isolation)
    code = f"""
import os, attacks
from xpredflow.sandbox import Sandbox
assert os.getuid() == {NOBODY}
with Sandbox(workers=1, isolation={isolation!r}) as box:
    def passes(program, expected, argument=3):
        verdict = box.run(program, [[[argument], expected]], entry_point="f", timeout=2.0)
        return verdict.passed or print(verdict.reason)
    assert passes(attacks.HONEST, 4)
    assert passes(attacks.FORKS, 0)
    assert passes(attacks.THREADS, 0)
    assert passes(attacks.SOCKETS, [])
    assert passes(attacks.KILLS, 0)
    assert passes(attacks.PROGRAMS, "nothing")
    assert passes(attacks.READS, [], ["/etc/passwd", "/proc/self/environ", "/tmp"])
    assert passes(attacks.WRITES, [], ["/tmp/x", "/x", "/usr/x", "/dev/shm/x", "/sandbox/x"])
    for attack in ("MEMORY", "OS_EXIT", "FORGED", "PATCHED", "FRAME_WALK", "ALWAYS_EQUAL"):
        program = getattr(attacks, attack).replace("BASE", "int").replace("WRAPPED", "Same()")
        assert not box.run(program, [[[3], 7]], entry_point="f", timeout=2.0).passed, attack
    assert passes(attacks.HONEST, 4)
print("held")
"""
    done = as_nobody(ordinary_python(), code)
    assert done.stdout.strip().endswith("held"), done.stdout + done.stderr

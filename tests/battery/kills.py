"""kill -9 at random moments of each command: given again, it ends like a run that was not killed.

Half of the kills come at a random moment of the processor's time, the others just before a random
write, where there is most to lose. Each run is a process of its own, forked from one that has
imported everything: a kill costs what the command itself costs.
"""

import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from battery.faults import COMMANDS, Disk, Workshop
from battery.outcome import Tally, Wrong

SECONDS = 300  # of the clock, after which a run counts as hanging; a busy machine is slow
KILLS = 3  # of one run
# Pictures, states and a table with times hold nothing that is not in logs, weights or JSON too.
LEFT_OUT = ("*.png", "*.pt", "compare.md")
TIMES = re.compile("second")  # in the names of what no two runs have in common


@dataclass(frozen=True)
class Whole:
    """A run that nobody killed: what it left, how long it computed, how often it wrote."""

    results: dict[str, Any]
    seconds: float
    writes: int


class Fatal(Disk):
    """A disk that ends the process, as `kill -9` would, just before its k-th write."""

    def touch(self, path: Any) -> None:
        try:
            super().touch(path)
        except OSError:
            os.kill(os.getpid(), signal.SIGKILL)


def try_kills(rounds: int, names: tuple[str, ...] = tuple(COMMANDS), seed: int = 0) -> Tally:
    """Every command so many times, each of them killed up to KILLS times; kills are counted."""
    tally, kills = Tally("kills"), 0
    with tempfile.TemporaryDirectory() as directory:
        shop = Workshop(Path(directory))
        for name in names:
            whole = _unkilled(shop, name, Path(directory) / f"{name}-whole")
            for number in range(rounds):
                out = Path(directory) / f"{name}-{number}"
                rng = Random(f"{seed}/{name}/{number}")
                killed: list[str] = []

                def case(name=name, out=out, whole=whole, rng=rng, killed=killed) -> None:
                    _case(shop, name, out, whole, rng, killed)

                tally.run(f"{name} #{number}", case)
                if tally.failed and tally.failed[-1].startswith(f"{name} #{number}:"):
                    tally.failed[-1] += f", killed {'; '.join(killed) or 'never'}"
                kills += len(killed)
    tally.part = f"kills ({kills})"
    return tally


def _unkilled(shop: Workshop, name: str, out: Path) -> Whole:
    """In this process, which then has imported all that the command needs, and in a copy of it."""
    shop.prepare(name, out)
    disk = Disk(out)
    with disk.mounted():
        code, said = shop.run(shop.words(name, out))
    if code:
        raise Wrong(f"{name} does not work at all: {said}")
    copy = out.with_name(f"{name}-copy")
    shop.prepare(name, copy)
    began = _computed()
    _forked(shop, name, copy)
    seconds, results = _computed() - began, _results(out)
    _compare(_results(copy), results)
    return Whole(results, seconds, disk.writes)


def _computed() -> float:
    """What processes that this one started and that have ended computed, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _case(
    shop: Workshop, name: str, out: Path, whole: Whole, rng: Random, killed: list[str]
) -> None:
    shop.prepare(name, out)
    for _ in range(KILLS):
        if rng.random() < 0.5:
            at: dict[str, Any] = {"write": rng.randint(1, whole.writes)}
        else:
            at = {"seconds": rng.uniform(0, whole.seconds)}
        if not _forked(shop, name, out, **at):
            break
        killed += [f"at {value:.3g} {kind}" for kind, value in at.items()]
    else:
        _forked(shop, name, out)
    _compare(_results(out), whole.results)


def _compare(found: dict[str, Any], expected: dict[str, Any]) -> None:
    names = {*found, *expected}
    if different := sorted(name for name in names if found.get(name) != expected.get(name)):
        raise Wrong(f"{', '.join(different)} differ from those of an unkilled run")


def _forked(
    shop: Workshop, name: str, out: Path, write: int | None = None, seconds: float | None = None
) -> bool:
    """Let a copy of this process run the command; whether it was killed on the way."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        _child(shop, name, out, write, writer)
    os.close(writer)
    _watch(child, seconds)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status:
        raise Wrong(f"{name} ended with {said[:300]}")
    return False


def _child(shop: Workshop, name: str, out: Path, write: int | None, writer: int) -> None:
    said, code = "", 1
    try:
        words = shop.words(name, out)
        # it is done: whoever gives the command again is told so, and nothing is missing
        done = name == "average" and (out / "mean" / "config.json").exists()
        with Fatal(out, write).mounted():
            code, said = (0, "") if done else shop.run(words)
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    finally:
        os.write(writer, said.encode())
        os._exit(code)


def _watch(child: int, seconds: float | None) -> None:
    """Kill a process when it has computed so long; return when it is dead or done."""
    clock = (~child << 3) | 2  # CPUCLOCK_SCHED: what all its threads have computed
    end = time.monotonic() + SECONDS
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        computed = time.clock_gettime(clock)
        if seconds is not None and computed >= seconds:
            os.kill(child, signal.SIGKILL)
            seconds = None
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise Wrong("it does not end")
        time.sleep(0.002)


def _results(out: Path) -> dict[str, Any]:
    """Everything below a directory by its name, without what depends on the clock."""
    files = [file for file in out.rglob("*") if file.is_file()]
    kept = [file for file in files if not any(file.match(pattern) for pattern in LEFT_OUT)]
    return {str(file.relative_to(out)): _content(file, out) for file in kept}


def _content(file: Path, out: Path) -> Any:
    """Lines in any order: answers are kept as they are done."""
    data = file.read_bytes().replace(str(out).encode(), b"OUT")
    if file.suffix == ".json":
        return _timeless(json.loads(data))
    if file.suffix == ".jsonl":
        lines = [_timeless(json.loads(line)) for line in data.split(b"\n") if line]
        return sorted(json.dumps(line) for line in lines)
    return data


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(part) for name, part in value.items() if not TIMES.search(name)}
    return [_timeless(part) for part in value] if isinstance(value, list) else value

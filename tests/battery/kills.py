"""kill -9 at random moments of each command that goes on: the result is that of an unkilled run."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from battery.faults import COMMANDS, RESUMED, Workshop
from battery.outcome import Tally, Wrong

SECONDS = 900  # after which a run counts as hanging; a busy machine is slow
NAMES = ("eval", "compare", "self-generate", *RESUMED)
KILLS = 3  # of one run, at most
# What must be the same in the end; pictures hold the time, and traces are written at the end.
COMPARED = ("*.safetensors", "log.jsonl", "own.jsonl", "T.jsonl")


def try_kills(rounds: int, names: tuple[str, ...] = NAMES, seed: int = 0) -> Tally:
    """Every command so many times, each time killed up to KILLS times."""
    tally = Tally("kills")
    with tempfile.TemporaryDirectory() as directory:
        shop = Workshop(Path(directory))
        for name in names:
            whole = Path(directory) / f"{name}-whole"
            seconds = _finish(shop, name, whole)
            for number in range(rounds):
                out = Path(directory) / f"{name}-{number}"
                rng = Random(f"{seed}/{name}/{number}")
                tally.run(
                    f"{name} #{number}",
                    lambda n=name, o=out, r=rng, w=whole, s=seconds: _killed(shop, n, o, w, r, s),
                )
    return tally


def _killed(shop: Workshop, name: str, out: Path, whole: Path, rng: Random, seconds: float) -> None:
    """Killed at moments spread over what an unkilled run takes, then given again to its end."""
    for _ in range(KILLS):
        process = _start(shop, name, out)
        try:
            process.wait(rng.uniform(0.2, 1.1) * seconds)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
    _finish(shop, name, out)
    for pattern in COMPARED:
        for file in whole.rglob(pattern):
            other = out / file.relative_to(whole)
            if _content(file) != _content(other):
                raise Wrong(f"{other} differs from that of an unkilled run")
    if left := [*out.rglob("*.tmp"), *out.rglob(".saving-*")]:
        raise Wrong(f"left behind: {left}")


def _content(file: Path) -> object:
    """Lines in any order: answers are kept as they are done."""
    data = file.read_bytes()
    return sorted(data.split(b"\n")) if file.suffix == ".jsonl" else data


def _start(shop: Workshop, name: str, out: Path) -> subprocess.Popen:
    words = shop.words(COMMANDS[name], out)
    if name in RESUMED and any(out.glob("state*.pt")):
        words.append("--resume")
    command = [sys.executable, "-m", "xpredflow", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _finish(shop: Workshop, name: str, out: Path) -> float:
    """Let the command come to its end; the seconds that it took."""
    began, process = time.monotonic(), _start(shop, name, out)
    try:
        _, said = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Wrong(f"{name} does not end") from None
    if process.returncode:
        raise Wrong(f"{name} ended with {process.returncode}: {said[-300:]!r}")
    return time.monotonic() - began

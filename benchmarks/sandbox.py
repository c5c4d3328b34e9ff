"""Milliseconds per run in a warm sandbox, and what many runs leave behind.

    python benchmarks/sandbox.py                    # 10,000 runs
    python benchmarks/sandbox.py --runs 1000 --isolation landlock
    python benchmarks/sandbox.py --humaneval ../shared/data/HumanEval.jsonl.gz

The program is a short function with eight tests, as minicode has them; with --humaneval the
published solutions run against their own checks as well. Latency is one worker, one run after the
other; throughput is one worker per core. Every tenth run is an attack that exits, litters or
crashes, so that the tidying up is measured too. Linux only. The last line is one JSON object.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from xpredflow.sandbox import ISOLATIONS, Job, Sandbox
from xpredflow.sandbox.footprint import footprint
from xpredflow.tasks.published.humaneval import HumanEval

LIMIT_MS = 10.0
PROGRAM = "def f(values, k):\n    return sum(v * k for v in values if v % 2 == 0)\n"
PAIRS = [[[list(range(n)), 3], 3 * sum(range(0, n, 2))] for n in range(8)]
ATTACKS = [
    "import os\nos._exit(0)\n",
    "def f(values, k):\n    open('note', 'w').write('x')\n    return 0\n",
    "import ctypes\nctypes.string_at(0)\n",
]


def main() -> None:
    options = parse()
    cores = len(os.sched_getaffinity(0))
    with Sandbox(workers=1, isolation=options.isolation) as box:
        report: dict[str, Any] = {"isolation": box.isolation, "uid": os.getuid()}
        report |= latency(box)
        if options.humaneval:
            report |= published(box, options.humaneval)
    with Sandbox(workers=cores, isolation=options.isolation) as box:
        report |= many(box, options.runs) | {"workers": cores}
    report |= {"hardware": hardware(), "load": os.getloadavg()[0], "python": sys.version.split()[0]}
    print(json.dumps(report))
    leaked = report["processes_left"] or report["descriptors_left"]
    sys.exit(bool(leaked) or report["median_ms"] > LIMIT_MS)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--isolation", choices=ISOLATIONS[:-1], help="default: the best there is")
    parser.add_argument("--humaneval", type=Path, help="HumanEval.jsonl.gz")
    return parser.parse_args()


def latency(box: Sandbox, runs: int = 500) -> dict[str, float]:
    job = Job(PROGRAM, PAIRS, "f")
    times = [timed(box, job) for _ in range(20 + runs)][20:]
    print(
        f"latency     median {statistics.median(times):6.2f} ms, mean {statistics.mean(times):.2f}"
    )
    return {"median_ms": statistics.median(times), "mean_ms": statistics.mean(times)}


def published(box: Sandbox, path: Path) -> dict[str, float]:
    task = HumanEval(path)
    times, passed = [], 0
    for problem in task.prompts():
        answer, start = task.published_answer(problem), time.perf_counter()
        passed += task.score(problem, answer, box.runner).passed
        times.append((time.perf_counter() - start) * 1e3)
    print(f"humaneval   median {statistics.median(times):6.2f} ms, {passed}/{len(times)} passed")
    return {"humaneval_median_ms": statistics.median(times), "humaneval_passed": passed}


def timed(box: Sandbox, job: Job) -> float:
    start = time.perf_counter()
    if not box.submit(job).result().passed:
        sys.exit("the benchmark's own program failed")
    return (time.perf_counter() - start) * 1e3


def many(box: Sandbox, runs: int) -> dict[str, Any]:
    """Throughput, and the footprint before and after."""
    jobs = [Job(PROGRAM, PAIRS, "f")] * 9 + [Job("", PAIRS, "f")]
    box.map(jobs * 10)
    before, start = footprint(box.pids()), time.perf_counter()
    passed = 0
    for i in range(runs // 100):
        batch = [*jobs[:9], Job(ATTACKS[i % len(ATTACKS)], PAIRS, "f")] * 10
        passed += sum(verdict.passed for verdict in box.map(batch))
    seconds, after = time.perf_counter() - start, footprint(box.pids())
    print(
        f"throughput  {runs / seconds:6.0f} runs/s, {passed} of {runs} passed (nine of ten honest)"
    )
    print(f"before      {before}")
    print(f"after       {after}")
    return {
        "runs": runs,
        "passed": passed,
        "runs_per_second": runs / seconds,
        "processes_left": after.processes - before.processes,
        "descriptors_left": after.descriptors - before.descriptors,
        "memory_growth_bytes": after.memory - before.memory,
    }


def hardware() -> str:
    info = Path("/proc/cpuinfo").read_text().splitlines()
    named = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    return f"{os.cpu_count()} x {named[0] if named else platform.machine()}"


if __name__ == "__main__":
    main()

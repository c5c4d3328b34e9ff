"""Every benchmark of speed and memory, one after the other, and a table of what they found.

    python benchmarks/table.py                           # `make bench`
    python benchmarks/table.py throughput growth         # some of them

Each runs in a process of its own and ends with one JSON line (quantize: one per format); all
lines are printed once more behind the table, so that they can be kept.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BENCHMARKS = (
    *("step_cost", "throughput", "equal_quality", "growth", "caches", "memory", "load"),
    *("compiled", "quantize", "align_memory"),
)


def main() -> None:
    names = sys.argv[1:] or BENCHMARKS
    lines: list[tuple[str, str]] = []
    for name in names:
        print(f"== {name}", flush=True)
        lines += [(name, line) for line in json_lines(HERE / f"{name}.py")]
    tables = [(name, list(figures(json.loads(line)))) for name, line in lines]
    width = max(len(figure) for _, rows in tables for figure, _ in rows)
    for name, rows in tables:
        print(f"\n{name}")
        for figure, value in rows:
            print(f"  {figure:{width}}  {value}")
    print()
    for _, line in lines:
        print(line)


def json_lines(script: Path) -> list[str]:
    """What a benchmark says is shown as it comes; its JSON objects are kept."""
    lines = []
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            lines += [line.strip()] if line.startswith("{") else []
    if running.returncode:
        sys.exit(f"{script.name} ended with exit code {running.returncode}")
    return lines


def figures(found: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every figure of a JSON object under the path to it."""
    if isinstance(found, dict):
        for key, value in found.items():
            if key != "benchmark":
                yield from figures(value, f"{name}, {key}" if name else str(key))
    elif isinstance(found, list) and found and isinstance(found[0], dict):
        for i, value in enumerate(found):
            yield from figures(value, f"{name} {i + 1}")
    else:
        yield name, found


if __name__ == "__main__":
    main()

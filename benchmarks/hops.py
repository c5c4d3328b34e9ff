"""How many of the package's files a reader has to follow: those that a call goes through.

    python benchmarks/hops.py

A file counts where at least one of its functions was executed, in any thread, from the public call
to its return; importing a module does not count, and neither do programs in processes of their own.
One prompt is generated, two updates align on twelve answers of the model itself, one update trains
a policy. These take a model that is loaded already; what loading goes through stands beside them.
Takes half a minute. The last line is one JSON object.
"""

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import xpredflow
from xpredflow import (
    AlignConfig,
    PolicyConfig,
    align,
    generate,
    load,
    self_generate,
    train_policy,
)

PACKAGE = Path(xpredflow.__file__).parent
QUESTION = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
POLICY = PolicyConfig(
    updates=1, prompts=2, group=2, pool=8, init_prompts=2, init_fits=5, validation=2, budget="1/4"
)


def main() -> None:
    found = {"load": files_of(lambda: load("tiny-aligned"))}
    model = load("tiny-aligned")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        answers = out / "own.jsonl"
        self_generate(model, "minimath", answers, limit=12, decoder="threshold")
        calls: dict[str, Callable[[], Any]] = {
            "generate": lambda: generate(model, QUESTION),
            "align": lambda: align(
                model, str(answers), AlignConfig(updates=2, batch=4), out=out / "aligned"
            ),
            "train_policy": lambda: train_policy(model, "minimath", POLICY, out=out / "policy"),
        }
        found |= {name: files_of(call) for name, call in calls.items()}
    for name, files in found.items():
        print(f"{name}: {len(files)} files")
        for file in files:
            print(f"  {file}")
    sources = sorted(PACKAGE.rglob("*.py"))
    lines = sum(len(file.read_text().splitlines()) for file in sources)
    print(f"the package: {len(sources)} files, {lines} lines, {lines / len(sources):.0f} a file")
    report = {name: len(files) for name, files in found.items()}
    print(json.dumps({**report, "files": len(sources), "lines": lines}))


def files_of(call: Callable[[], Any]) -> list[str]:
    """The package's files in which a function was executed, in order of their names."""
    seen: set[str] = set()
    inside = f"{PACKAGE}{os.sep}"

    def note(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if (
            event == "call"
            and name.startswith(inside)
            and name not in seen
            and not importing(frame)
        ):
            seen.add(name)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(name.removeprefix(inside) for name in seen)


def importing(frame: FrameType | None) -> bool:
    """Whether this runs because a module is being imported: its body, classes and decorators."""
    while frame is not None and frame.f_code is not files_of.__code__:
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    main()

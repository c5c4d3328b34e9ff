"""Time to answer the same problems at equal accuracy: flow, threshold, EB, LLaDA's generate.py.

    python benchmarks/equal_quality.py                   # 100 test problems, a few minutes
    python benchmarks/equal_quality.py --limit 500 --choose 200

On `tiny-aligned` and minimath. generate.py takes a pass per position, batched and one at a time.
Every other decoder is run with each of its settings on --choose validation problems; its best one
is the fastest (in passes) whose accuracy there is at most a point below generate.py's, or the most
accurate if none is. That one answers the test problems. CPU seconds of one process without
grading; ratios are against generate.py at the same batch. `--cached` adds the chosen settings in
blocks of 32 without and with the approximate caches. The last line is one JSON object.
"""

import argparse
import json
from typing import Any

import torch
from peer_loops import CpuSeconds, batches, generate_py, hardware

from xpredflow import generate, load, make_task
from xpredflow.engine.prompts import encode
from xpredflow.engine.rows import before_end
from xpredflow.models import MaskedDiffusionModel
from xpredflow.tasks import Problem

SETTINGS = {
    "flow": ["flow", "flow:jump:0.7", "flow+commit_threshold=0.7", "flow+commit_threshold=0.5"],
    "threshold": ["threshold:0.5", "threshold:0.7", "threshold:0.9"],
    "eb": ["eb:0.1", "eb:0.5", "eb:1"],
}
SINGLE = 8  # problems that generate.py answers one at a time
EQUAL = 0.01
CACHES = (None, "prefix", "dual")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--choose", type=int, default=60)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cached", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    bench = Bench(given.batch)
    known = bench.full("validation", given.choose, given.batch)
    chosen = {
        name: bench.best([bench.ours(spec, "validation", given.choose) for spec in specs], known)
        for name, specs in SETTINGS.items()
    }
    full = bench.full("test", given.limit, given.batch)
    single = bench.full("test", SINGLE, 1)
    rows = [full, *(bench.ours(spec, "test", given.limit) for spec in chosen.values())]
    alone = [bench.ours(spec, "test", SINGLE, batch=1) for spec in chosen.values()]
    if given.cached:
        rows += [
            bench.ours(spec, "test", given.limit, block_length=32, cache=cache)
            for spec in chosen.values()
            for cache in CACHES
        ]
    for found, base in [
        *((row, full) for row in rows),
        *((row, single) for row in (single, *alone)),
    ]:
        found["x generate.py"] = round(base["ms per answer"] / found["ms per answer"], 2)
        shown = "  ".join(f"{name} {value}" for name, value in found.items())
        print(shown)
    facts = {"task": "minimath", "hardware": hardware(given.threads), "limit": given.limit}
    facts |= {"batch": given.batch, "length": bench.length, "choose": given.choose}
    found = {"batched": rows, "one at a time": [single, *alone]}
    print(json.dumps({"benchmark": "equal_quality", **facts, **found}))


class Bench:
    """The model, the problems, and what one way of answering them takes."""

    def __init__(self, batch: int) -> None:
        self.batch, self.task = batch, make_task("minimath")
        self.model: MaskedDiffusionModel = load("tiny-aligned", device="cpu")
        self.length = self.task.response_length
        generate(self.model, [[5]], gen_length=8)  # what is computed once

    def problems(self, split: str, count: int) -> list[Problem]:
        return [self.task.problem(split, i) for i in range(count)]

    def full(self, split: str, count: int, batch: int) -> dict[str, Any]:
        """LLaDA's loop at a pass per position."""
        problems, model, seconds = self.problems(split, count), self.model, CpuSeconds()
        prompts = [encode(model, p.prompt, chat=None, system=None).ids for p in problems]
        ids: list[list[int]] = []
        for some in batches(prompts, batch):
            found = seconds.run("", lambda some=some: generate_py(model, some, self.length))
            ids += [before_end(row, model.special.ends) for row in found.tolist()]
        assert model.tokenizer is not None
        texts = [model.tokenizer.decode(row) for row in ids]
        return self._row("generate.py", problems, texts, seconds, [self.length] * count, batch)

    def ours(
        self, spec: str, split: str, count: int, batch: int | None = None, **options: Any
    ) -> dict[str, Any]:
        """One of our decoders."""
        problems, seconds = self.problems(split, count), CpuSeconds()
        shared = {"gen_length": self.length, "max_batch": batch or self.batch, **options}
        done = seconds.run(
            "", lambda: generate(self.model, [p.prompt for p in problems], decoder=spec, **shared)
        )
        row = self._row(
            spec,
            problems,
            [one.text for one in done],
            seconds,
            [one.passes for one in done],
            batch or self.batch,
        )
        return row | {name: value for name, value in options.items() if value is not None}

    def _row(
        self,
        spec: str,
        problems: list[Problem],
        texts: list[str],
        seconds: CpuSeconds,
        passes: list[int],
        batch: int,
    ) -> dict[str, Any]:
        pairs = zip(problems, texts, strict=True)
        right = sum(self.task.score(problem, text).passed for problem, text in pairs)
        found = {
            "decoder": spec,
            "batch": batch,
            "problems": len(problems),
            "accuracy": round(right / len(problems), 4),
            "passes": round(sum(passes) / len(passes), 2),
            "ms per answer": round(1e3 * seconds.of[""] / len(problems), 2),
        }
        print("...", *(f"{name} {value}" for name, value in found.items()), flush=True)
        return found

    def best(self, tried: list[dict[str, Any]], full: dict[str, Any]) -> str:
        """The fewest passes at equal accuracy, else the highest accuracy."""
        equal = [one for one in tried if one["accuracy"] >= full["accuracy"] - EQUAL]
        if equal:
            return min(equal, key=lambda one: one["passes"])["decoder"]
        return max(tried, key=lambda one: one["accuracy"])["decoder"]


if __name__ == "__main__":
    main()

"""A stream of mixed prompts at equal outputs: our loop beside LLaDA's, continuous beside fixed.

    python benchmarks/throughput.py                      # 128 prompts, a few minutes of one core
    python benchmarks/throughput.py --prompts 500 --threads 2

On `tiny-aligned`, prompts of minimath and minicode in turn. Mask prediction at one pass per
position, ours beside LLaDA's generate.py (batched, left-padded; its head runs on the prompt as
well, `response head` spares it that) at --batch rows and one at a time. The flow with rows that
leave and join at any pass, beside batches that stay together until their slowest row has ended, in
the same loop. Both sides run in turn in one process, so that LLaDA's loop too has the allocator
as our engine sets it; `alone` is that loop in a process without our engine, as its users run it.
Times are CPU seconds of the process, ratios above 1 say how many times faster ours is. Linux
only. The last line is one JSON object.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from peer_loops import CpuSeconds, batches, generate_py, hardware
from torch import Tensor

from xpredflow import generate, load, make_task
from xpredflow.engine.prompts import encode
from xpredflow.engine.request import DecodeOptions, resolve
from xpredflow.models import MaskedDiffusionModel
from xpredflow.types import Canvas, Decoder, Event, Signals, Space, StepInfo

SINGLE = 8  # prompts that are decoded one at a time


@dataclass(frozen=True)
class Together:
    """A decoder whose rows wait for each other, as in a loop without continuous batching."""

    inner: Decoder

    def __getattr__(self, name: str):
        return getattr(self.inner, name)

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        """A row that has ended is computed on, but nothing of it changes any more."""
        after, event = self.inner.step(canvas, signals, info, space)
        ended = canvas.memory.get("ended")
        if ended is not None:
            after = after.update(
                **{
                    name: _kept(ended, canvas, after, name)
                    for name in ("state", "progress", "tokens")
                }
            )
        over = self.inner.stop(after)
        return after.update(
            memory={**after.memory, "ended": over if ended is None else over | ended}
        ), event

    def finish(self, canvas: Canvas, space: Space) -> Tensor:
        return self.inner.finish(canvas, space)

    def stop(self, canvas: Canvas) -> Tensor:
        ended = canvas.memory["ended"]
        return ended.all().expand_as(ended)


def _kept(ended: Tensor, before: Canvas, after: Canvas, name: str) -> Tensor:
    """A field of a canvas as it was in rows that have ended."""
    old, new = getattr(before, name), getattr(after, name)
    return torch.where(ended.reshape(-1, *[1] * (new.ndim - 1)), old, new)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--prompts", type=int, default=128)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    model = load("tiny-aligned", device="cpu")
    prompts = mixed_prompts(model, given.prompts)
    if given.peer:
        print(peer_alone(model, prompts, given.length, given.batch))
        return
    generate(model, prompts[:2], decoder="mask", gen_length=8)  # what is computed once
    found: dict[str, object] = {}
    for part in (
        lambda: against_generate_py(model, prompts, given.length, given.batch, "batched"),
        lambda: against_generate_py(model, prompts[:SINGLE], given.length, 1, "one at a time"),
        lambda: against_fixed(model, prompts, given.length, given.batch),
        lambda: {"hardware": hardware(given.threads)},
    ):
        for name, value in (figures := part()).items():
            print(f"{name:44} {value}", flush=True)
        found |= figures
    command = [sys.executable, __file__, *sys.argv[1:], "--peer"]
    alone = float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    ratio = alone / found["batched: CPU seconds"]["ours"]  # type: ignore[index]
    found["batched: x generate.py, alone"] = round(ratio, 3)
    print(f"{'batched: x generate.py, alone':44} {ratio:.3f}")
    facts = {name: getattr(given, name) for name in ("prompts", "batch", "length", "threads")}
    print(json.dumps({"benchmark": "throughput", **facts, **found}))


def mixed_prompts(model: MaskedDiffusionModel, count: int) -> list[list[int]]:
    tasks = [make_task(name) for name in ("minimath", "minicode")]
    texts = [tasks[i % 2].problem("test", i // 2).prompt for i in range(count)]
    return [encode(model, text, chat=None, system=None).ids for text in texts]


def peer_alone(
    model: MaskedDiffusionModel, prompts: list[list[int]], length: int, batch: int
) -> float:
    """CPU seconds of LLaDA's loop in a process that never saw our engine."""
    generate_py(model, prompts[:2], 8)
    seconds = CpuSeconds()
    for rows in batches(prompts, batch):
        seconds.run("alone", lambda rows=rows: generate_py(model, rows, length))
    return seconds.of["alone"]


def against_generate_py(
    model: MaskedDiffusionModel, prompts: list[list[int]], length: int, batch: int, title: str
) -> dict[str, object]:
    """Mask prediction by both loops, batch after batch in turn."""
    seconds, same, held = CpuSeconds(), 0, []
    for rows in batches(prompts, batch):
        ours = seconds.run(
            "ours",
            lambda rows=rows: generate(
                model, rows, decoder="mask", gen_length=length, max_batch=batch
            ),
        )
        theirs = seconds.run("generate.py", lambda rows=rows: generate_py(model, rows, length))
        seconds.run(
            "response head",
            lambda rows=rows: generate_py(model, rows, length, head_everywhere=False),
        )
        pairs = zip(ours, theirs.tolist(), strict=True)
        same += sum(done.all_ids == ids for done, ids in pairs)
        held.append(resident())
    of = seconds.of
    return {
        f"{title}: prompts with the same ids": f"{same} of {len(prompts)}",
        f"{title}: CPU seconds": {name: round(value, 2) for name, value in of.items()},
        f"{title}: x generate.py": round(of["generate.py"] / of["ours"], 3),
        f"{title}: x generate.py, response head": round(of["response head"] / of["ours"], 3),
        f"{title}: MB held after each batch": [round(b / 1e6) for b in held],
    }


def against_fixed(
    model: MaskedDiffusionModel, prompts: list[list[int]], length: int, batch: int
) -> dict[str, object]:
    """The flow with continuous batching, and in batches whose rows wait for each other."""
    _, flow = resolve("flow", {"gen_length": length}, model)
    waiting, seconds = Together(flow), CpuSeconds()
    options: DecodeOptions = {"gen_length": length, "max_batch": batch}
    ours = seconds.run("continuous", lambda: generate(model, prompts, decoder=flow, **options))
    fixed = []
    for rows in batches(prompts, batch):
        fixed += seconds.run(
            "fixed", lambda rows=rows: generate(model, rows, decoder=waiting, **options)
        )
    same = sum(a.ids == b.ids for a, b in zip(ours, fixed, strict=True))
    passes = [sum(done.passes for done in side) / len(prompts) for side in (ours, fixed)]
    return {
        "flow: prompts with the same ids": f"{same} of {len(prompts)}",
        "flow: CPU seconds": {name: round(value, 2) for name, value in seconds.of.items()},
        "flow: passes per row, continuous and fixed": [round(p, 2) for p in passes],
        "flow: x fixed batches": round(seconds.of["fixed"] / seconds.of["continuous"], 3),
    }


def resident() -> int:
    """Bytes that the process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    main()

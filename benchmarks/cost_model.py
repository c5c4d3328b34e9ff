"""The cost model beside measurements, and what it says of devices that are not here.

    python benchmarks/cost_model.py                  # tiny and a generated shape of 0.3B, then both
    python benchmarks/cost_model.py --only computed  # published models on data sheets, no clock

Measured is a pass of the flow in a session, in which no row joins or leaves; the least of several.
What the model needs of this machine is measured in the same run, each by one kind of kernel at the
sizes of the pass: products of a layer and of the head, attention, a norm, a rotation, a copy in
another order, an MLP's gate, a softmax, a search for the best; and a pass of a model with hardly
any arithmetic, which says what the host takes for each kernel, bookkeeping included. None of it is
solved from the pass that is predicted.
Seconds are those of the processor, on one thread: other programs may run beside. The last line is
JSON.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

from xpredflow import Engine, load
from xpredflow.engine.distribution import CHUNK_BYTES, KEPT
from xpredflow.engine.steps import Step
from xpredflow.experiments.cost_model import (
    AFTER_KERNELS,
    END_KERNELS,
    INNER_PASSES,
    LAYER_KERNELS,
    ROTATED_PASSES,
    Architecture,
    PassShape,
    Rates,
    candidates,
    parts_of,
    seconds_of,
)
from xpredflow.experiments.projection import (
    ASSUMED,
    H100,
    PUBLISHED,
    RTX_4090,
    Decoding,
    alignment,
    decoding_bytes,
    pass_seconds,
    published,
    rollouts_seconds,
)
from xpredflow.models import MaskedDiffusionModel, build
from xpredflow.models.attention import rotate
from xpredflow.models.layers import RMSNorm

PROMPT, LENGTH = 64, 64
GENERATED: dict[str, Any] = {
    **PUBLISHED["LLaDA-8B"],
    **{"d_model": 1024, "n_heads": 16, "n_kv_heads": 16, "n_layers": 16},
    **{"mlp_hidden_size": 3072, "vocab_size": 32000, "embedding_size": 32000},
    **{"mask_token_id": 31999, "eos_token_id": 31998},
}
HARDLY_ANY: dict[str, Any] = {
    **GENERATED,
    **{"d_model": 8, "n_heads": 1, "n_kv_heads": 1, "n_layers": 1, "mlp_hidden_size": 8},
    **{"vocab_size": 72, "embedding_size": 72, "mask_token_id": 71, "eos_token_id": 70},
}
NORM_PASSES = 7  # of an RMSNorm
PASSES = 32  # of rows before others take their places
IN_A_ROW = 3  # passes
AT_LEAST = 0.005  # seconds that a kernel is repeated for


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", choices=("measured", "computed"))
    parser.add_argument("--rounds", type=int, default=16)
    given = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {"benchmark": "cost_model"}
    if given.only != "computed":
        with torch.no_grad():
            found["measured"] = measured(given.rounds)
    if given.only != "measured":
        found["computed"] = computed()
    print(json.dumps(found))


def measured(rounds: int) -> list[dict[str, Any]]:
    """Prediction and measurement for both shapes, in milliseconds of the processor."""
    models = {"tiny": lambda: load("tiny", device="cpu"), "generated": lambda: build(GENERATED)}
    lines = []
    for name, make in models.items():
        model = make()
        arch = Architecture.of(model)
        rounds = rounds if name == "tiny" else max(1, rounds // 8)  # a pass takes a second
        for rows in (1, 8) if name == "tiny" else (1,):
            shape = PassShape(rows, PROMPT + LENGTH, LENGTH, PROMPT + LENGTH)
            parts = parts_of(arch, shape, 4)
            rates, taken = rates_here(arch, shape, rounds, passes_of(model, rows))
            each = {part: 1e3 * rates[part].seconds(parts[part]) for part in parts}
            predicted, taken = 1e3 * seconds_of(parts, rates), 1e3 * taken
            off = predicted / taken - 1
            print(
                f"{name} ({arch.weights / 1e6:.1f}M weights), {rows} rows: predicted"
                f" {predicted:.1f} ms, measured {taken:.1f} ms ({off:+.0%}); "
                + ", ".join(f"{part} {ms:.1f}" for part, ms in each.items())
            )
            lines.append(
                {"model": name, "rows": rows, "predicted_ms": predicted, "measured_ms": taken}
                | {"gflops": rates["layers"].flops / 1e9, "launch_us": 1e6 * rates["head"].launch}
            )
    return lines


def passes_of(model: MaskedDiffusionModel, rows: int) -> Callable[[], float]:
    """A function that does a pass of the flow and says its seconds.

    Passes with which rows join or leave are done beside, and not timed.
    """
    engine = Engine(model, decoder="flow:constant:1/64", chat=False, gen_length=LENGTH)
    steps: Iterator[Step] = iter(())
    left = 0

    def one() -> float:
        nonlocal steps, left
        if not left:
            steps, left = engine.steps([[65] * PROMPT] * rows), PASSES
            for _ in range(2):
                next(steps)
        left -= 1
        begun = time.process_time()
        step = next(steps)
        taken = time.process_time() - begun
        if step.finished:
            left = 0
            return math.inf
        return taken

    return one


def rates_here(
    arch: Architecture, shape: PassShape, rounds: int, one_pass: Callable[[], float]
) -> tuple[dict[str, Rates], float]:
    """What this machine does at the sizes of a pass, by part, and the seconds of a pass.

    All are timed in turn: what else the machine does meanwhile, it does to all of them.
    """
    positions, read = shape.positions, shape.rows * shape.read
    inputs, (gate, inner) = (
        torch.randn(positions, arch.width),
        torch.randn(2, positions, arch.inner),
    )
    wide = RMSNorm(arch.width, 1e-5)
    sizes = [(arch.width, arch.width)] * 4 + [(arch.inner, arch.width)] * 2
    sizes += [(arch.width, arch.inner)]
    layer = sum(rows * columns for rows, columns in sizes)
    # as many layers as do not fit into a cache, or all: weights come from where they do in a pass
    layers = [
        [torch.randn(size) for size in sizes] for _ in range(min(arch.layers, 1 + 2**25 // layer))
    ]

    def products() -> None:
        """Results are kept for a layer: those of a pass are not where the last ones were."""
        for *matrices, last in layers:
            found = [F.linear(inputs, matrix) for matrix in matrices]
            F.linear(found[-1], last)

    q, k, v = torch.randn(3, shape.rows, shape.inputs, arch.heads, arch.head_dim)
    angles = torch.randn(2, shape.rows, shape.inputs, 1, arch.head_dim)
    queries, keys, values = q.transpose(1, 2).contiguous(), k.transpose(1, 2), v.transpose(1, 2)
    head, hidden = torch.randn(arch.vocabulary, arch.width), torch.randn(read, arch.width)
    at_once = max(1, min(read, CHUNK_BYTES["cpu"] // (4 * arch.vocabulary)))
    logits = torch.randn(at_once, arch.vocabulary)
    chunk, some = torch.empty_like(logits), candidates(arch.vocabulary)
    seconds = least(
        {
            "layers": products,
            "attention": lambda: F.scaled_dot_product_attention(queries, keys, values),
            "rotation": lambda: rotate(q, *angles),
            "reordering": lambda: q.transpose(1, 2).contiguous(),
            "head": lambda: F.linear(hidden, head),
            "norm": lambda: wide(inputs),
            "gate": lambda: F.silu(gate) * inner,
            "copy": lambda: chunk.copy_(logits),
            "softmax": lambda: torch.softmax(logits, -1),
            "topk": lambda: logits[:, :some].topk(KEPT),
        },
        rounds,
        {"pass": one_pass, "host": passes_of(build(HARDLY_ANY), 1)},
    )
    launch = seconds["host"] / (LAYER_KERNELS + END_KERNELS + AFTER_KERNELS)
    pairs = shape.rows * shape.inputs * shape.keys * arch.heads * arch.head_dim
    everything = math.inf  # what moves is part of the product that was timed
    rates = {
        "layers": Rates(
            flops=2 * positions * layer * len(layers) / seconds["layers"],
            bytes=NORM_PASSES * inputs.nbytes / seconds["norm"],
            copied=2 * q.nbytes / seconds["reordering"],
            rotated=ROTATED_PASSES * q.nbytes / seconds["rotation"],
            gated=INNER_PASSES * inner.nbytes / seconds["gate"],
            launch=launch,
        ),
        "attention": Rates(4 * pairs / seconds["attention"], everything, launch=launch),
        "head": Rates(2 * read * head.numel() / seconds["head"], everything, launch=launch),
        "after the head": Rates(
            flops=1.0,
            bytes=2 * logits.nbytes / seconds["copy"],
            exps=logits.numel() / seconds["softmax"],
            ranked=at_once * some / seconds["topk"],
            launch=launch,
        ),
    }
    return rates, seconds["pass"]


def least(
    jobs: dict[str, Callable[[], object]], rounds: int, timed: dict[str, Callable[[], float]]
) -> dict[str, float]:
    """Seconds of the processor, all in turn; those that are short are repeated within a round."""
    best = dict.fromkeys((*jobs, *timed), math.inf)
    counts = dict.fromkeys(jobs, 1)
    for number in range(rounds + 1):
        for name, one in timed.items():
            # several: the first one finds its weights gone from the caches
            best[name] = min(best[name], *(one() for _ in range(IN_A_ROW)))
        for name, job in jobs.items():
            begun = time.process_time()
            for _ in range(counts[name]):
                job()
            taken = (time.process_time() - begun) / counts[name]
            if number:
                best[name] = min(best[name], taken)
            else:  # the first round warms up and says how often is enough
                counts[name] = max(1, min(1000, int(AT_LEAST / max(taken, 1e-6))))
    return best


def computed() -> list[dict[str, Any]]:
    """Published models on data sheets: every figure is computed."""
    print(f"computed, not measured; assumed: {ASSUMED._asdict()}")
    lines: list[dict[str, Any]] = []
    for name in PUBLISHED:
        model = published(name)
        for device, devices in ((RTX_4090, 1), (H100, 1), (H100, 8)):
            where = f"{name} on {devices} × {device.name}"
            for rows in (1, 8, 32):
                lines.append(_decoding(model, where, Decoding(rows, 256, 256, 64), device, devices))
            lines.append(_training(model, where, device, devices))
    return lines


def _decoding(
    model: MaskedDiffusionModel, where: str, job: Decoding, device: Any, together: int
) -> dict[str, Any]:
    needed = decoding_bytes(model, job, together)
    fits = needed <= device.memory
    one = pass_seconds(model, job, device, together)
    rate = job.rows * job.gen_length / (job.passes * one)
    said = f"{1e3 * one:.1f} ms a pass, {rate:,.0f} tokens/s"
    if not fits:
        packed = decoding_bytes(model, job, together, "int8")
        said = f"does not fit ({packed / 1e9:.1f} GB with matrices in int8)"
    print(f"{where}, decoding {job.rows} rows: {needed / 1e9:.1f} GB a device, {said}")
    facts = {"where": where, "rows": job.rows, "gigabytes": needed / 1e9, "fits": fits}
    return facts | ({"pass_ms": 1e3 * one, "tokens_per_second": rate} if fits else {})


def _training(model: MaskedDiffusionModel, where: str, device: Any, devices: int) -> dict[str, Any]:
    lines: dict[str, Any] = {"where": where}
    for kind, rank in (("all weights", 0), ("adapters of rank 16", 16)):
        update = alignment(model, device, devices, rows=32, length=512, lora_rank=rank)
        fits = update.bytes <= device.memory
        said = f"{update.seconds:.1f} s an update" if fits else "does not fit"
        print(f"{where}, alignment of {kind}: {update.bytes / 1e9:.1f} GB a device, {said}")
        lines[kind] = {"gigabytes": update.bytes / 1e9, "seconds": update.seconds, "fits": fits}
    job = Decoding(32, 256, 256, 64)
    if decoding_bytes(model, job) <= device.memory:
        seconds = rollouts_seconds(model, job, device, devices, 64)
        print(f"{where}, GRPO: {seconds:.1f} s of rollouts an update (64 of 64 passes)")
        lines["rollouts_seconds"] = seconds
    else:
        print(f"{where}, GRPO: the model does not fit on a device")
    return lines


if __name__ == "__main__":
    main()

"""Peak memory of alignment: of its loss at LLaDA's vocabulary, and of whole runs of about 2 GB.

    python benchmarks/align_memory.py
    python benchmarks/align_memory.py --positions 2048 --width 128 --chunk 256
    python benchmarks/align_memory.py --runs
    python benchmarks/align_memory.py --computed

The first two: forward and backward of the readout loss (the head's gradient included) over 126,464
tokens in fp32, chunked and all at once. Both losses are printed: they are the same. `--runs` aligns
a generated model in fp32 (all parameters, with activations computed again, adapters, and two
processes that share the weights) and writes it. Each way is a fresh process; its peak is VmHWM at
the end minus VmRSS before its inputs are there. `--computed` measures nothing: it is the formula
for LLaDA-8B. Linux only. The last line is one JSON object; the exit code is 1 if a peak is more
than a tenth above the formula, a fifth for whole runs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from load import LLADA_8B, hardware, memory
from torch import Tensor

from xpredflow.models import save
from xpredflow.models.base import on_meta
from xpredflow.models.families import family_of
from xpredflow.models.random_weights import build
from xpredflow.processes import Share, join_processes, leave_processes
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.lora import add_adapters
from xpredflow.training.align.memory import Work, footprint
from xpredflow.training.align.readout import Tables, read_out
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.answers import Answer
from xpredflow.training.common.start import start_from

VOCABULARY, MASK = 126_464, 126_336
SLACK = 1.1
RUN_SLACK = 1.2  # of whole runs: the process also holds what AdamW makes for a tensor on a CPU
ANSWER = 128  # positions of prompt and response in a run
RUN = AlignConfig(updates=3, batch=2, chunk=64, save_every=100, holdout=2)
SHAPE = {
    **LLADA_8B,
    **{"d_model": 768, "n_heads": 12, "n_kv_heads": 12, "n_layers": 8, "mlp_hidden_size": 2304},
    **{"vocab_size": 16384, "embedding_size": 16384, "mask_token_id": 16383, "eos_token_id": 0},
}
SMALL = {**SHAPE, "d_model": 24, "n_layers": 1, "mlp_hidden_size": 72, "vocab_size": 16384}
WAYS: dict[str, tuple[dict[str, Any], int]] = {  # settings, processes
    "all": ({}, 1),
    "recomputed": ({"checkpointing": True, "accumulate": 2}, 1),
    "adapters": ({"checkpointing": True, "lora_rank": 8}, 1),
    "two_processes": ({"checkpointing": True}, 2),
}
COMPUTED = {
    "adapters, 1 device": (AlignConfig(lora_rank=8), 1),
    "adapters, 8 devices": (AlignConfig(lora_rank=8), 8),
    "all, 1 device": (AlignConfig(), 1),
    "all, 1, 8bit, no ref.": (AlignConfig(moments="8bit", reference_every=0), 1),
    "all, 8 devices": (AlignConfig(), 8),
}


def main() -> None:
    options = parse()
    if options.way:
        measure(options) if options.place is None else measure_run(options)
        return
    if options.runs or options.computed:
        show_runs() if options.runs else show_computed()
        return
    found = {way: json.loads(run_child(options, way)) for way in ("chunked", "naive")}
    sizes = (options.positions, options.chunk, options.width)
    report = {
        "vocabulary": VOCABULARY,
        "positions": options.positions,
        "chunk": options.chunk,
        "width": options.width,
        "formula_bytes": formula(*sizes),
        **{
            f"{way}_{name}": value
            for way, values in found.items()
            for name, value in values.items()
        },
        "hardware": hardware(),
        "torch": torch.__version__,
    }
    print(f"one (positions, vocabulary) table {options.positions * VOCABULARY * 4 / 1e9:6.3f} GB")
    print(f"formula  {report['formula_bytes'] / 1e9:6.3f} GB")
    for way, values in found.items():
        print(
            f"{way:8} {values['peak_bytes'] / 1e9:6.3f} GB, {values['seconds']:.1f} s,"
            f" loss {values['loss']:.6f}"
        )
    print(json.dumps(report))
    sys.exit(report["chunked_peak_bytes"] > SLACK * report["formula_bytes"])


def formula(positions: int, chunk: int, width: int) -> int:
    """Two tables of a chunk, both gradients, and one batch of products of the hidden states."""
    return 4 * (2 * chunk * VOCABULARY + VOCABULARY * width + 2 * positions * width)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--positions", type=int, default=1024)
    parser.add_argument("--chunk", type=int, default=128)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--runs", action="store_true", help="whole runs in place of the loss")
    parser.add_argument("--computed", action="store_true", help="LLaDA-8B by the formula")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def run_child(options: argparse.Namespace, way: str) -> str:
    sizes = [f"--{name}={getattr(options, name)}" for name in ("positions", "chunk", "width")]
    command = [sys.executable, __file__, "--way", way, *sizes]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=clean())
    return output.stdout.splitlines()[-1]


def clean(**more: str) -> dict[str, str]:
    """Tables must go back to the system when they are freed, or the peak is the allocator's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    return {**kept, "MALLOC_MMAP_THRESHOLD_": "1000000", **more}


def measure(options: argparse.Namespace) -> None:
    """One forward and backward pass in this process."""
    draw = torch.Generator().manual_seed(0)
    head = (torch.randn(VOCABULARY, options.width, generator=draw) / 4).requires_grad_()
    table = torch.randn(VOCABULARY, options.width, generator=draw)
    hidden = torch.randn(options.positions, options.width, generator=draw).requires_grad_()
    target = torch.randint(MASK, (options.positions,), generator=draw)
    warm_up(options.width)
    before, start = memory("VmRSS"), time.perf_counter()
    if options.way == "chunked":
        total = read_out(hidden, target, Tables(head, table, MASK), options.chunk).total
        loss = total / options.positions
    else:
        loss = naive(hidden, head, table, target)
    loss.backward()
    seconds = time.perf_counter() - start
    report = {"peak_bytes": memory("VmHWM") - before, "seconds": round(seconds, 2)}
    print(json.dumps({**report, "loss": loss.item()}))


def naive(hidden: Tensor, head: Tensor, table: Tensor, target: Tensor) -> Tensor:
    """The definition, word by word."""
    logits = hidden @ head.T
    logits[:, MASK] = -torch.inf
    return F.mse_loss(logits.softmax(-1) @ table, table[target])


def warm_up(width: int) -> None:
    """Libraries allocate their own buffers at the first product."""
    x = torch.randn(8, width, requires_grad=True)
    tables = Tables(torch.randn(16, width, requires_grad=True), torch.randn(16, width), 15)
    read_out(x, torch.zeros(8, dtype=torch.long), tables).total.backward()


def show_runs() -> None:
    """Every configuration of WAYS on a generated checkpoint, beside the formula."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="align_memory_") as place:
        save(build(SHAPE, dtype="bfloat16"), Path(place) / "model")
        for way, (_, world) in WAYS.items():
            found[way] = run_processes(Path(place), way, world)
            peak, expected = (found[way][f"{what}_bytes"] for what in ("peak", "expected"))
            print(
                f"{way:14} formula {expected / 1e9:6.3f} GB, measured {peak / 1e9:6.3f},"
                f" when it was written {found[way]['end_bytes'] / 1e9:6.3f}",
                flush=True,
            )
    print(json.dumps({"runs": found, "hardware": hardware(), "torch": torch.__version__}))
    sys.exit(any(one["peak_bytes"] > RUN_SLACK * one["expected_bytes"] for one in found.values()))


def run_processes(place: Path, way: str, world: int) -> dict[str, int]:
    """The larger of what the processes of a way report."""
    command = [sys.executable, __file__, "--way", way, "--place", str(place)]
    shared = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}
    started = [
        subprocess.Popen(
            command, env=clean(**shared, RANK=str(rank)), stdout=subprocess.PIPE, text=True
        )
        for rank in range(world)
    ]
    outputs = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise SystemExit(f"{way} failed")
    reports = [json.loads(output.splitlines()[-1]) for output in outputs]
    return max(reports, key=lambda report: report["peak_bytes"])


def measure_run(options: argparse.Namespace) -> None:
    """A run in this process: its peak in training, and at the end of writing the weights."""
    share = join_processes()
    config = replace(RUN, **WAYS[options.way][0])
    ids = [[1 + n % 7 for n in range(ANSWER)] for _ in range(20)]
    answers = [Answer(i, "none", "", "", row[:32], row[32:], ANSWER) for i, row in enumerate(ids)]
    # what torch imports and allocates for itself the first time is not the run's
    small = start_from(build(SMALL), answers)
    list(Alignment(small, config, options.place / f"{options.way}-small", share=share))
    before = memory("VmRSS")
    start = start_from(options.place / "model", answers, "cpu")
    training = Alignment(start, config, options.place / options.way, share=share)
    expected = training.expected()
    assert expected is not None
    updates = iter(training)
    for _ in range(config.updates - 1):
        next(updates)
    peak = memory("VmHWM") - before
    list(updates)  # the last one saves the state
    training.finish(options.place / options.way / "model")
    report = {"peak_bytes": peak, "expected_bytes": expected.total}
    print(json.dumps({**report, "end_bytes": memory("VmHWM") - before}))
    leave_processes()


def show_computed() -> None:
    """LLaDA-8B with the defaults, answers of up to 1,024 positions, bf16 products."""
    found = {}
    for name, (config, world) in COMPUTED.items():
        model = on_meta(family_of(LLADA_8B), LLADA_8B).requires_grad_()
        model.embedding.requires_grad_(False)
        if config.lora_rank:
            add_adapters(model, config.lora_rank, "", seed=0)
        size = sum(p.numel() for p in model.parameters())
        parts = config.parts(Share(0, world), 1024, size)
        positions = config.batch // (parts * world) * 1024
        work = Work(positions, parts, world, torch.bfloat16, config.recomputes(size))
        expected = footprint(model, config, work)
        found[name] = {**vars(expected), "total": expected.total}
        print(f"{name:24} {expected.line()}", flush=True)
    print(json.dumps({"computed": found}))


if __name__ == "__main__":
    main()

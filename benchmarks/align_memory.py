"""Peak memory of the alignment loss at LLaDA's vocabulary: chunked, by formula, and all at once.

    python benchmarks/align_memory.py
    python benchmarks/align_memory.py --positions 2048 --width 128 --chunk 256

Forward and backward of the readout loss (the head's gradient included) over 126,464 tokens in fp32,
each way in a fresh process. Peak memory is that process's VmHWM at the end minus its VmRSS when the
inputs are there. Both losses are printed: they are the same. Linux only. The last line is one JSON
object; the exit code is 1 if the chunked peak is more than a tenth above the formula.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from load import hardware, memory
from torch import Tensor

from xpredflow.training.align.readout import Tables, read_out

VOCABULARY, MASK = 126_464, 126_336
SLACK = 1.1


def main() -> None:
    options = parse()
    if options.way:
        measure(options)
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
    parser.add_argument("--way", choices=["chunked", "naive"], help=argparse.SUPPRESS)
    return parser.parse_args()


def run_child(options: argparse.Namespace, way: str) -> str:
    sizes = [f"--{name}={getattr(options, name)}" for name in ("positions", "chunk", "width")]
    command = [sys.executable, __file__, "--way", way, *sizes]
    # Tables must go back to the system when they are freed, or the peak is the allocator's.
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    clean["MALLOC_MMAP_THRESHOLD_"] = "1000000"
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=clean)
    return output.stdout.splitlines()[-1]


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


if __name__ == "__main__":
    main()

"""What compiled layers save in a pass, and what compiling takes.

    python benchmarks/compiled.py                        # tiny and tiny-moe, half a minute
    python benchmarks/compiled.py --models tiny --rows 32

A forward pass of the whole model without a cache, of rows of one length and of padded ones, plain
and compiled in turn; a layer that is not one graph is an error. CPU milliseconds of the process,
the least of some passes; `compiling` is the first pass. The last line is one JSON object.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from peer_loops import hardware
from torch import Tensor

from xpredflow import load
from xpredflow.models import MaskedDiffusionModel
from xpredflow.models.compilation import compile_layers

LENGTH, READ = 128, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", default=["tiny", "tiny-moe"])
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    found: dict[str, Any] = {}
    for name in given.models:
        plain, compiled = load(name, device="cpu"), load(name, device="cpu")
        compile_layers(compiled, whole=True)
        for kind, shorter in (("one length", LENGTH), ("padded", 3 * LENGTH // 4)):
            one, other = (pass_of(model, given.rows, shorter) for model in (plain, compiled))
            with torch.no_grad():
                figures = compared(one, other, given.rounds)
            found[f"{name}, {kind}"] = figures
            print(f"{name}, {kind}: {figures}", flush=True)
    facts = {"hardware": hardware(given.threads), "rows": given.rows, "length": LENGTH}
    print(json.dumps({"benchmark": "compiled", **facts, **found}))


def pass_of(model: MaskedDiffusionModel, rows: int, shorter: int) -> Callable[[], Tensor]:
    """A pass of rows of which every other one is shorter, left-padded."""
    positions = torch.full((rows, LENGTH), -1)
    for i in range(rows):
        length = shorter if i % 2 else LENGTH
        positions[i, LENGTH - length :] = torch.arange(length)
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, LENGTH, model.embedding.shape[1], generator=draw)
    columns = torch.arange(LENGTH - READ, LENGTH).expand(rows, -1)
    return lambda: model.logits(inputs, positions, columns)


def compared(
    plain: Callable[[], Tensor], compiled: Callable[[], Tensor], rounds: int
) -> dict[str, float]:
    """Milliseconds of both, seconds of compiling, and how far the logits are apart."""
    start = time.process_time()
    logits = compiled()
    compiling = time.process_time() - start
    apart = (plain() - logits).abs().max().item()
    least = [float("inf")] * 2
    for _ in range(rounds):
        for i, one in enumerate((plain, compiled)):
            start = time.process_time()
            one()
            least[i] = min(least[i], 1e3 * (time.process_time() - start))
    return {
        "plain ms": round(least[0], 1),
        "compiled ms": round(least[1], 1),
        "compiling s": round(compiling, 1),
        "largest difference": float(f"{apart:.1e}"),
    }


if __name__ == "__main__":
    main()

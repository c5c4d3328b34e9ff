"""dllm's Qwen3-0.6B on a laptop: memory of loading, seconds of a pass beside transformers' own.

    python benchmarks/laptop.py                          # about 3 minutes; OMP_NUM_THREADS decides
    python benchmarks/laptop.py --keep DIR --rounds 20   # the checkpoint stays, and is reused

A checkpoint of exactly that shape (596,049,920 weights, bf16, tied) with random weights is written.
A fresh process per format loads it: the peak is its VmHWM after loading minus its VmRSS after the
imports. One more process has our model and transformers' Qwen3ForCausalLM of the same weights under
a mask that hides nothing, and runs them in turns: `forward` is the logits of every position,
`pass` one pass of a decoder, whose head sees the response alone. Ratios are medians over the rounds
of CPU time, ours over theirs, which other processes disturb less than wall time. Linux only. The
last line is one JSON object.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from load import QWEN3_06B, hardware, memory

from xpredflow.engine.loop import decode_steps
from xpredflow.models import build, load, save

NAME = "Qwen3-0.6B-diffusion-mdlm-v0.1"
MASK = {"mask_token_id": 151669}
FORMATS: dict[str, dict[str, Any]] = {
    "bfloat16": {},
    "float32": {"dtype": "float32"},
    "int8": {"quantize": "int8"},
    "int4": {"quantize": "int4"},
    "auto": {"dtype": "auto"},
}
MOST_MEMORY, MOST_TIME = 1.1, 1.05
PROMPT, RESPONSE, ROWS = 64, 128, 1


def main() -> None:
    options = parse()
    if options.load:
        print(json.dumps(loaded(options.keep, options.load)))
        return
    if options.times:
        print(json.dumps(times(options.keep, options.rounds)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        directory = (options.keep or Path(temporary)) / NAME
        if not (directory / "config.json").is_file():
            save(build({**QWEN3_06B, **MASK}, dtype="bfloat16"), directory)
        memories = {}
        for name in FORMATS:
            memories[name] = found = child(directory, "--load", name)
            print(
                f"{name:9} weights {found['weights'] / 1e9:.3f} GB, peak {found['peak'] / 1e9:.3f}"
                f" GB, ratio {found['ratio']:.3f} (limit {MOST_MEMORY}),"
                f" {found['pass_seconds']:.2f} s per pass"
            )
        compared = child(directory, "--times", "--rounds", str(options.rounds))
    for what in ("forward", "pass"):
        print(f"{what:9} {compared[what]:.3f} of transformers' forward (limit {MOST_TIME})")
    report = {"benchmark": "laptop", "hardware": hardware(), "torch": torch.__version__}
    report |= {"threads": torch.get_num_threads(), "positions": [PROMPT, RESPONSE]}
    print(json.dumps({**report, "memory": memories, "times": compared}))
    over = [found["ratio"] for found in memories.values() if found["ratio"] > MOST_MEMORY]
    sys.exit(bool(over) or compared["forward"] > MOST_TIME)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--keep", type=Path, help="write to this directory, or reuse what is there")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--load", choices=FORMATS, help=argparse.SUPPRESS)
    parser.add_argument("--times", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def child(directory: Path, *arguments: str) -> dict[str, Any]:
    """What a fresh process finds."""
    command = [sys.executable, __file__, "--keep", str(directory), *arguments]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def loaded(directory: Path, name: str) -> dict[str, Any]:
    """Load in this process, then decode a few passes."""
    before = memory("VmRSS")
    model = load(directory, device="cpu", **FORMATS[name])
    peak = memory("VmHWM") - before
    weights = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
    took = [_seconds(step)[0] for step in _passes(model, 3)]
    found = {"weights": weights, "peak": peak, "ratio": round(peak / weights, 4)}
    return found | {"pass_seconds": round(min(took), 3), "note": model.chosen_because}


def times(directory: Path, rounds: int) -> dict[str, float]:
    """Our passes and transformers' in turns, in the dtype that is stored."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    model = load(directory, device="cpu")
    config = {name: value for name, value in QWEN3_06B.items() if name != "architectures"}
    config.pop("model_type")
    with torch.device("meta"):
        theirs = Qwen3ForCausalLM(Qwen3Config(**config))
    theirs.load_state_dict(model.state_dict(), strict=False, assign=True)
    theirs.tie_weights()
    # what no checkpoint holds: the rotary frequencies
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(theirs.config)
    theirs.eval()
    length = PROMPT + RESPONSE
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 150_000, (ROWS, length), generator=draw)
    places = torch.arange(length).expand(ROWS, -1)
    everything = torch.zeros(ROWS, 1, length, length, dtype=model.embedding.dtype)

    def plain() -> torch.Tensor:
        return theirs(input_ids=ids, attention_mask=everything, use_cache=False).logits

    def ours() -> torch.Tensor:
        return model.logits(model.embedding[ids], places, places)

    with torch.no_grad():
        apart = float((ours().float() - plain().float()).norm() / plain().float().norm())
        steps = _passes(model, rounds + 1)
        _seconds(next(steps))
        found: dict[str, list[float]] = {"plain": [], "forward": [], "pass": []}
        wall: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(rounds):
            for name, run in (("plain", plain), ("forward", ours), ("pass", next(steps))):
                seconds, cpu = _seconds(run)
                found[name].append(cpu)
                wall[name].append(seconds)
    ratio = {
        name: round(median(a / b for a, b in zip(found[name], found["plain"], strict=True)), 4)
        for name in ("forward", "pass")
    }
    walls = {f"{name}_seconds": round(median(values), 3) for name, values in wall.items()}
    return {**ratio, **walls, "logits_apart": apart}


def _passes(model: Any, count: int) -> Any:
    """So many passes of mask prediction at full budget, one by one."""
    prompt = [[i + 1 for i in range(PROMPT)]] * ROWS
    steps = decode_steps(model, prompt, decoder="mask", gen_length=RESPONSE, chat=False)
    for _ in range(count):
        yield lambda: next(steps)


def _seconds(run: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU time of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()

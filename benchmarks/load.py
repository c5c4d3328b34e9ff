"""Peak memory and time of loading a checkpoint, against the size of its weights.

    python benchmarks/load.py                       # 2 GB, the dense LLaDA layout
    python benchmarks/load.py --shape llada2        # 2 GB, stacked experts
    python benchmarks/load.py --shape qwen3-0.6b    # dllm's Qwen3-0.6B: 1.19 GB, a tied head
    python benchmarks/load.py --shape llada-8b      # the real LLaDA-8B: 16.03 GB in 6 shards

The checkpoint is generated in bf16 in a temporary directory (or in --keep DIR, and reused from
there) and loaded by a fresh process. Peak memory is that process's VmHWM after loading minus its
VmRSS after the imports. VmHWM and not ru_maxrss: the latter is inherited from the parent process.
Linux only. The last line is one JSON object.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from xpredflow.experiments.projection import LLADA2_MINI, LLADA_8B
from xpredflow.models import load
from xpredflow.models.base import on_meta
from xpredflow.models.families import family_of

SHARDS = 6
LIMIT = 1.1
QWEN3_06B: dict[str, Any] = {
    "architectures": ["A2DQwen3LMHeadModel"],
    "model_type": "a2d-qwen3",
    "masked_diffusion": {"block": 0},
    "hidden_size": 1024,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "eos_token_id": 151645,
    "tie_word_embeddings": True,
}
WHOLE = {"llada-8b": LLADA_8B, "qwen3-0.6b": QWEN3_06B}  # shapes that are taken as they are


def main() -> None:
    options = parse()
    if options.child:
        measure(options.child)
        return
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or Path(temporary)
        if not (directory / "config.json").is_file():
            generate(directory, config_for(options.shape, options.gigabytes))
        report = json.loads(run_child(directory))
    report |= {"shape": options.shape, "hardware": hardware(), "torch": torch.__version__}
    print(f"weights  {report['weights_bytes'] / 1e9:7.3f} GB, {report['tensors']} tensors, bf16")
    print(f"peak     {report['peak_bytes'] / 1e9:7.3f} GB above the process after imports")
    print(f"ratio    {report['ratio']:7.3f} (limit {LIMIT})")
    rate = report["weights_bytes"] / report["seconds"] / 1e9
    print(f"time     {report['seconds']:7.1f} s = {rate:.2f} GB/s on {report['hardware']}")
    print(json.dumps(report))
    sys.exit(report["ratio"] > LIMIT)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--shape", choices=["llada", "llada2", *WHOLE], default="llada")
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of llada and llada2")
    parser.add_argument("--keep", type=Path, help="write to this directory, or reuse what is there")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def config_for(shape: str, gigabytes: float) -> dict[str, Any]:
    """The published shape, narrowed or cut in depth to about this size."""
    if shape in WHOLE:
        return WHOLE[shape]
    if shape == "llada2":
        # A small vocabulary, so that the experts are what is measured: 1.64 GB in each layer.
        small = {"vocab_size": 8192, "mask_token_id": 0, "eos_token_id": 1}
        return LLADA2_MINI | small | {"num_hidden_layers": 1 + max(1, round(gigabytes / 1.64))}
    width = {"d_model": 2048, "n_heads": 16, "n_kv_heads": 16, "mlp_hidden_size": 6144}
    layers = max(1, round((gigabytes * 1e9 - 1.036e9) / 0.1091e9))  # tables, then each layer
    return LLADA_8B | width | {"n_layers": layers}


def generate(directory: Path, config: dict[str, Any]) -> None:
    """Write shard after shard, split by tensor name as the published checkpoints are."""
    directory.mkdir(parents=True, exist_ok=True)
    model = on_meta(family_of(config), config)
    places, shells = model.places(), model.state_dict()
    names, weight_map = sorted(places), {}
    for i in range(SHARDS):
        file = f"model-{i + 1:05d}-of-{SHARDS:05d}.safetensors"
        part = {}
        for name in names[i::SHARDS]:
            ours, row = places[name]
            shape = shells[ours].shape if row is None else shells[ours].shape[1:]
            part[name] = torch.full(shape, 0.01, dtype=torch.bfloat16)
            weight_map[name] = file
        save_file(part, directory / file, metadata={"format": "pt"})
        print(f"wrote {file}")
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    # Last: a directory with a config.json is a whole checkpoint.
    (directory / "config.json").write_text(json.dumps(config))


def run_child(directory: Path) -> str:
    command = [sys.executable, __file__, "--child", str(directory)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return output.splitlines()[-1]


def measure(directory: Path) -> None:
    """Load in this process and print what it took."""
    before, start = memory("VmRSS"), time.perf_counter()
    model = load(directory)
    seconds = time.perf_counter() - start
    peak = memory("VmHWM") - before
    weights = sum(tensor.nbytes for tensor in model.state_dict().values())
    report = {
        "weights_bytes": weights,
        "peak_bytes": peak,
        "ratio": round(peak / weights, 4),
        "seconds": round(seconds, 2),
        "tensors": len(model.places()),
    }
    print(json.dumps(report))


def memory(field: str) -> int:
    """A field of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def hardware() -> str:
    info = Path("/proc/cpuinfo").read_text().splitlines()
    named = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    return f"{os.cpu_count()} x {named[0] if named else platform.machine()}"


if __name__ == "__main__":
    main()

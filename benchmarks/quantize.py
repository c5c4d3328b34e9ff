"""Memory of packed weights, side by side: one JSON line per format.

    python benchmarks/quantize.py               # a generated LLaDA checkpoint of 2 GB in bfloat16

Each format is loaded in a process of its own. `weights` are the bytes of all tensors, `peak` is the
most that the process ever held beyond what it had before loading. Linux only.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

FORMATS = ("none", "int8", "int4")
LAYER = 4 * 2048 * 2048 + 3 * 2048 * 6144  # weights of one layer of this shape


def write(directory: Path, megabytes: int) -> None:
    """A checkpoint of about this size with random weights."""
    from xpredflow.models import build, save
    from xpredflow.training.pretrain.initialise import read_shape

    layers = max(1, round(megabytes * 1e6 / 2 / LAYER))
    shape = {"d_model": 2048, "n_heads": 16, "n_kv_heads": 16, "mlp_hidden_size": 6144}
    config = {**read_shape("tiny"), **shape, "n_layers": layers}
    save(build(config, dtype="bfloat16"), directory)


def status(field: str) -> int:
    """Bytes of this process by /proc; not ru_maxrss, which is inherited from the parent process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def measure(directory: Path, quantize: str) -> None:
    """One line about one format, in this process."""
    from xpredflow.models import load

    before = status("VmRSS")
    model = load(directory, device="cpu", quantize=None if quantize == "none" else quantize)
    held = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
    peak = status("VmHWM") - before
    line = {"benchmark": "quantize", "format": quantize, "weights": held, "peak": peak}
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--measure", nargs=2, metavar=("DIRECTORY", "FORMAT"))
    given = parser.parse_args()
    if given.measure:
        measure(Path(given.measure[0]), given.measure[1])
        return
    with tempfile.TemporaryDirectory() as temporary:
        write(Path(temporary), given.megabytes)
        for quantize in FORMATS:
            command = [sys.executable, __file__, "--measure", temporary, quantize]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()

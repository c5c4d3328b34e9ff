"""What the approximate caches save in a step, at the widths of a model of a billion weights.

    python benchmarks/caches.py                          # two layers of 22, half a minute
    python benchmarks/caches.py --layers 22 --dtype bfloat16

Random weights: 2,048 wide, 32 heads, an MLP of 5,632 (TinyLlama's shape, 1.1 billion weights with
22 layers). A row with a prompt of 192 positions and a response of 64 in blocks of 32, decoded by
mask prediction; steps of the first block behind its first pass, without a cache and with each,
in turn. CPU milliseconds of the process, the least of some steps. The last line is one JSON object.
"""

import argparse
import json
import time

import torch
from peer_loops import hardware

from xpredflow.engine.session import Session
from xpredflow.models import build
from xpredflow.training.pretrain.initialise import read_shape

PROMPT, LENGTH, BLOCK = 192, 64, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", default="float32", choices=("bfloat16", "float32"))
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    shape = {"d_model": 2048, "n_heads": 32, "n_kv_heads": 32, "mlp_hidden_size": 5632}
    model = build({**read_shape("tiny"), **shape, "n_layers": given.layers}, dtype=given.dtype)
    sessions: dict[str, Session] = {}
    for cache in (None, "prefix", "dual"):
        session = Session(model, max_batch=1, decoder="mask", cache=cache)
        session.submit([3] * PROMPT, gen_length=LENGTH, block_length=BLOCK, stop_at_eos=False)
        session.step()  # of the whole row
        sessions[cache or "none"] = session
    least = dict.fromkeys(sessions, float("inf"))
    for _ in range(given.rounds):
        for name, session in sessions.items():
            start = time.process_time()
            session.step()
            least[name] = min(least[name], 1e3 * (time.process_time() - start))
    for name, ms in least.items():
        print(f"{name:8} {ms:9.1f} ms a step   {least['none'] / ms:6.2f} x as fast")
    facts = {"layers": given.layers, "dtype": given.dtype, "hardware": hardware(given.threads)}
    facts |= {"prompt": PROMPT, "length": LENGTH, "block": BLOCK, "batch": 1}
    shown = {name: round(ms, 1) for name, ms in least.items()}
    print(json.dumps({"benchmark": "caches", **facts, "ms": shown}))


if __name__ == "__main__":
    main()

"""How the cost of a step grows with length, batch, blocks and vocabulary.

    python benchmarks/growth.py                          # a few minutes of one core
    python benchmarks/growth.py --longest 512 --rounds 2

Random weights at the embedded models' shapes. A step is one pass of a session with mask prediction
in which nothing ends. `length` and `batch` grow the response and the rows of a bidirectional model,
`blocks` the position of the block that a block-causal one decodes behind its cache (blocks of 32),
`cached` the same for a bidirectional one with cache=dual, `vocabulary` the head. For each curve the
exponent of cost = a·x^b is fitted to the upper half of its points (0: flat, 1: in proportion).
Times are the least CPU milliseconds of several steps. The last line is one JSON object.
"""

import argparse
import json
import math
import time
from collections.abc import Iterable
from typing import Any

import torch
from peer_loops import hardware

from xpredflow.engine.session import Session
from xpredflow.models import MaskedDiffusionModel, build
from xpredflow.training.pretrain.initialise import read_shape

PROMPT, BLOCK = 16, 32
Curve = dict[int, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--longest", type=int, default=1024)
    parser.add_argument("--largest", type=int, default=64, help="batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    room = {"max_sequence_length": 2 * given.longest}
    dense = build({**read_shape("tiny"), **room})
    moe = build({**read_shape("tiny-moe"), "max_position_embeddings": 2 * given.longest})
    lengths, batches = doublings(64, given.longest), doublings(1, given.largest)
    blocks = doublings(1, given.longest // BLOCK)
    curves: dict[str, Curve] = {
        "length": {n: step_cost(dense, 1, n, given.rounds) for n in lengths},
        "batch": {n: step_cost(dense, n, 64, given.rounds) for n in batches},
        "blocks": {n: in_block(moe, n, given.longest, given.rounds) for n in blocks},
        "cached": {
            n: in_block(dense, n, given.longest, given.rounds, cache="dual") for n in blocks
        },
        "vocabulary": {n: with_vocabulary(n, given.rounds) for n in doublings(1024, 65_536, 4)},
    }
    fitted = {name: round(exponent(curve), 2) for name, curve in curves.items()}
    for name, curve in curves.items():
        points = "  ".join(f"{x}: {cost:.1f}" for x, cost in curve.items())
        print(f"{name:10} exponent {fitted[name]:5.2f}   ms at {points}")
    facts = {"hardware": hardware(given.threads), "threads": given.threads}
    shown = {name: {x: round(c, 2) for x, c in curve.items()} for name, curve in curves.items()}
    print(json.dumps({"benchmark": "growth", **facts, "exponents": fitted, "ms": shown}))


def doublings(first: int, last: int, factor: int = 2) -> list[int]:
    return [first * factor**i for i in range(int(math.log(last / first, factor)) + 1)]


def step_cost(
    model: MaskedDiffusionModel, batch: int, length: int, rounds: int, **options: Any
) -> float:
    """The least milliseconds of a step in the first block; the first two steps are not counted."""
    session = Session(model, max_batch=batch, decoder="mask", stop_at_eos=False, **options)
    for row in range(batch):
        session.submit([3 + row] * PROMPT, gen_length=length)
    session.step()
    session.step()
    return least(session, rounds)


def in_block(
    model: MaskedDiffusionModel, number: int, longest: int, rounds: int, **options: Any
) -> float:
    """The least milliseconds of a step in this block; the blocks before it take a pass each.

    The answer before it is part of the prompt, so that nothing else has to be decoded.
    """
    before = (number - 1) * BLOCK
    session = Session(model, max_batch=1, decoder="mask", stop_at_eos=False, **options)
    session.submit(
        [3] * (BLOCK + before),
        gen_length=longest - BLOCK - before or BLOCK,
        block_length=None if model.block_size is not None else BLOCK,
    )
    session.step()
    session.step()
    return least(session, rounds)


def with_vocabulary(tokens: int, rounds: int) -> float:
    shape = {**read_shape("tiny"), "vocab_size": tokens, "embedding_size": tokens}
    return step_cost(build(shape), 1, 64, rounds)


def least(session: Session, rounds: int) -> float:
    return min(_timed(session) for _ in range(rounds)) * 1e3


def _timed(session: Session) -> float:
    start = time.process_time()
    step = session.step()
    assert step is not None
    assert not step.finished, "a row ended while its steps were timed"
    return time.process_time() - start


def exponent(curve: Curve) -> float:
    """b of a·x^b by least squares of the logarithms, over the upper half of the points."""
    points = [(math.log(x), math.log(cost)) for x, cost in sorted(curve.items())]
    upper = points[len(points) // 2 - (len(points) == 2) :]
    return slope(upper)


def slope(points: Iterable[tuple[float, float]]) -> float:
    xs, ys = zip(*points, strict=True)
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread


if __name__ == "__main__":
    main()

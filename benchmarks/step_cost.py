"""What a step costs, part by part, and what follows the head beside LLaDA's own post-processing.

    python benchmarks/step_cost.py                       # LLaDA-8B's head in bf16, then tiny
    python benchmarks/step_cost.py --positions 128 --dtype float32

At LLaDA-8B's widths (126,464 tokens, 4,096 wide, random table) one layer is measured and counted 32
times, as the model has it. `signals` reads the logits, `update` is the flow's step on them.
LLaDA's post-processing of the same logits is what its generate.py does between the model and the
new ids (argmax, softmax, gather, top k), in the logits' dtype and with the softmax in float64.
All are timed in turn, the least of several rounds counts. For tiny, passes of a session are timed,
by mask prediction and by the flow, and the model's part of each inside it: the rest is what follows
the head, bookkeeping included; the quickest fifth of the passes counts. The last line is JSON.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from xpredflow import Flow, load
from xpredflow.engine.distribution import Distribution
from xpredflow.engine.session import Session
from xpredflow.engine.signals import read
from xpredflow.models import MaskedDiffusionModel
from xpredflow.models.attention import Pass, Shape
from xpredflow.models.llada import Block
from xpredflow.models.machine import keep_freed_memory
from xpredflow.policies.heuristic import Confidence
from xpredflow.types import Canvas, Space, SpecialTokens, StepInfo

VOCABULARY, WIDTH, LAYERS, PROMPT = 126_464, 4096, 32, 64
SESSIONS = {
    "mask": "mask",
    "flow": "flow:constant:1/64+rules=paper",
}  # in neither do rows end early
PASSES = 32  # of rows before others take their places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--positions", type=int, default=64)
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_freed_memory()  # as a session does: else page faults decide over what the parts take
    with torch.no_grad():
        wide = at_llada(given.positions, getattr(torch, given.dtype), given.rounds)
        tiny = {f"batch {n}": at_tiny(n, 20 * given.rounds) for n in (1, 8)}
    facts = {"positions": given.positions, "dtype": given.dtype, "threads": given.threads}
    show("LLaDA-8B's head", wide)
    for name, found in tiny.items():
        show(f"tiny, {name}", found)
    print(json.dumps({"benchmark": "step_cost", **facts, "llada": wide, "tiny": tiny}))


def at_llada(positions: int, dtype: torch.dtype, rounds: int) -> dict[str, float]:
    """Milliseconds of each part, and ratios."""
    draw = torch.Generator().manual_seed(0)
    some = torch.randn(1024, WIDTH, generator=draw).to(dtype)
    table = some.repeat(-(-VOCABULARY // 1024), 1)[:VOCABULARY]
    special = SpecialTokens(mask=VOCABULARY - 1, eos=VOCABULARY - 2)
    heads = WIDTH // 128
    shape = Shape(special, 4096, LAYERS, heads, heads, 128, 128, 1e4)
    layer = Block(shape, 3 * WIDTH, 1e-5).to(dtype)
    head = nn.Linear(WIDTH, VOCABULARY, bias=False, device="meta")
    head.weight = nn.Parameter(table, requires_grad=False)
    places = torch.arange(PROMPT + positions).unsqueeze(0)
    inputs = torch.randn(1, PROMPT + positions, WIDTH, generator=draw).to(dtype)
    hidden = torch.randn(1, positions, WIDTH, generator=draw).to(dtype) / 40
    logits = head(hidden)
    update = flow_update(logits, Space(table, special))
    times = least(
        {
            "layer": lambda: layer(inputs, Pass.begin(places, shape, None), 0),
            "head": lambda: head(hidden),
            "signals": lambda: Distribution(logits, (special.mask,)).summary(),
            "update": update,
            "generate.py": lambda: post_processing(logits, torch.float32),
            "generate.py, float64": lambda: post_processing(logits, torch.float64),
        },
        rounds,
    )
    times["trunk"] = LAYERS * times.pop("layer")
    after = times["signals"] + times["update"]
    return times | {
        "after the head": after,
        "x generate.py": after / times["generate.py"],
        "x generate.py, float64": after / times["generate.py, float64"],
        "share of the step": after / (after + times["trunk"] + times["head"]),
    }


def post_processing(logits: Tensor, precision: torch.dtype) -> Tensor:
    """What LLaDA's generate.py makes of a pass: its tokens, how sure they are, the best of them."""
    x0 = logits.argmax(-1)
    doubled = logits.to(precision) if precision is torch.float64 else logits
    p = doubled.softmax(-1)
    confidence = p.gather(-1, x0.unsqueeze(-1)).squeeze(-1)
    chosen = confidence.topk(2).indices
    return torch.zeros_like(x0).scatter(-1, chosen, x0.gather(-1, chosen))


def flow_update(logits: Tensor, space: Space) -> Callable[[], object]:
    """The flow's step on the signals of these logits."""
    batch, positions = logits.shape[:2]
    canvas = Canvas.blank(torch.zeros(batch, positions, dtype=torch.bool), space)
    everyone = torch.zeros(batch, dtype=torch.long)
    info = StepInfo(everyone, everyone + positions, rows=tuple(range(batch)))
    signals, flow = read(logits, space.special), Flow(Confidence())
    return lambda: flow.step(canvas, signals, info, space)


def at_tiny(batch: int, rounds: int) -> dict[str, float]:
    """The same for the embedded model, and the rest of a session's pass."""
    model, length = load("tiny"), 64
    rows = PROMPT + length
    places = torch.arange(rows).expand(batch, -1)
    columns, inputs = places[:, PROMPT:], torch.randn(batch, rows, model.embedding.shape[1])
    _, _, head = model.trunk()
    hidden = model.hidden(inputs, places, columns)
    logits = head(hidden)
    times = least(
        {
            "trunk": lambda: model.hidden(inputs, places, columns),
            "head": lambda: head(hidden),
            "signals": lambda: Distribution(logits, (model.special.mask,)).summary(),
            "update": flow_update(logits, Space(model.embedding, model.special)),
            "generate.py": lambda: post_processing(logits, torch.float32),
        },
        rounds,
    )
    for name, decoder in SESSIONS.items():
        one = steps_of(model, batch, decoder)
        passes = sorted(one() for _ in range(rounds))[: max(1, rounds // 5)]
        whole, inside = (1e3 * sum(parts) / len(passes) for parts in zip(*passes, strict=True))
        found = {"step": whole, "model": inside, "after the head": whole - inside}
        found["share of the step"] = 1 - inside / whole
        times |= {f"{part}, {name}": value for part, value in found.items()}
    return times


def steps_of(
    model: MaskedDiffusionModel, batch: int, decoder: str
) -> Callable[[], tuple[float, float]]:
    """Seconds of a pass of a session, and of the model in it; new rows come before any ends."""
    read, inside = type(model).logits, 0.0

    def logits(*args: Any) -> Tensor:
        nonlocal inside
        start = time.process_time()
        found = read(model, *args)
        inside = time.process_time() - start
        return found

    model.logits = logits  # type: ignore[method-assign]  (a spy)
    session = Session(model, max_batch=batch)
    tickets: list[int] = []
    left = 0

    def step() -> tuple[float, float]:
        nonlocal left
        if left == 0:
            for number in tickets:
                session.cancel(number)
            tickets[:] = [
                session.submit([1] * PROMPT, decoder=decoder, gen_length=64) for _ in range(batch)
            ]
            session.step()
            session.step()
            left = PASSES
        start = time.process_time()
        session.step()
        left -= 1
        return time.process_time() - start, inside

    return step


def least(parts: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least CPU time of each in milliseconds, in turn: others on the machine do not count."""
    best = dict.fromkeys(parts, float("inf"))
    for _ in range(rounds + 1):
        for name, part in parts.items():
            start = time.process_time()
            part()
            best[name] = min(best[name], 1e3 * (time.process_time() - start))
    return best


def show(title: str, found: dict[str, float]) -> None:
    print(title)
    for name, value in found.items():
        unit = "" if name.startswith(("x ", "share")) else " ms"
        print(f"  {name:24} {value:10.3f}{unit}")
    found |= {name: round(value, 4) for name, value in found.items()}


if __name__ == "__main__":
    main()

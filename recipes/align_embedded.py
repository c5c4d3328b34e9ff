"""Align the embedded models: once as the paper does, then twice on states that the flow visits.

    python recipes/align_embedded.py tiny            (make align-tiny)       about an hour on a core
    python recipes/align_embedded.py tiny-moe        (make align-tiny-moe)   about two hours
    python recipes/align_embedded.py tiny runs/tiny/model     from other weights than the shipped
    python recipes/align_embedded.py tiny --paper    the paper's alignment alone, a quarter of that

Killed, the same command goes on where it was. runs/tiny-on-policy-2/model is the result. First come
full-budget answers and the paper's alignment, then twice the flow's own answers, right ones only,
and an alignment on states that lead there. docs/log.md has what each of them changed.

With --paper the first answers, right and wrong ones, are learned from once, by the paper's loss and
nothing beside it; runs/tiny-paper/model is the result, shipped as `tiny-aligned-paper`.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from xpredflow.training.align import AlignConfig, align

RUNS = Path("runs")
FIRST_ANSWERS = {"tiny": 3000, "tiny-moe": 1200}
PAPER_ANSWERS = {"tiny": 1500, "tiny-moe": 1200}
FLOW_ANSWERS = {"tiny": 10_000, "tiny-moe": 6000}
BY_FLOW = (
    *("-d", "flow", "-o", "policy=power:8", "-o", "budget=1/4"),
    *("--retry", "--keep", "solved"),
)
PAPER = AlignConfig(updates=300, lr=3e-4, dtype="float16")
ONCE = AlignConfig(updates=300, lr=3e-4, clean_entropy=0.5, keep_reference=1.5, dtype="float16")
ON_POLICY = AlignConfig(
    updates=400, lr=2e-4, clean_entropy=0.1, on_policy=0.4, reference_every=4, dtype="float16"
)
ON_POLICY_2 = AlignConfig(
    updates=600, lr=3e-4, clean_entropy=0.2, on_policy=0.5, reference_every=4, dtype="float16"
)


def answers_of(model: str, name: str, count: int, *options: str) -> Path:
    """The model's own answers to both tasks; those that are in the file already stay."""
    file = RUNS / f"{name}.jsonl"
    command = [sys.executable, "-m", "xpredflow", "self-generate", "-m", model]
    command += ["--data", "minicode,minimath", "--dtype", "float32", "--limit", str(count)]
    subprocess.run([*command, "--out", str(file), *options], check=True)
    return file


def aligned(model: str, answers: Path, config: AlignConfig, name: str) -> str:
    """The checkpoint of an alignment, which is run to its end from wherever it is."""
    out = RUNS / name
    if not (out / "model").exists():
        resume = (out / "state.pt").exists()
        done = align(
            model,
            answers,
            config,
            out=out,
            resume=resume,
            watch=lambda now: print(f"{out}: {now.line()}", flush=True),
        )
        print(f"{out}: before {done.before}, after {done.after}")
    return str(out / "model")


def paper(name: str, start: str) -> str:
    """The paper's alignment alone: one round, unfiltered answers, no states of the flow."""
    own = answers_of(start, f"{name}-paper-own", PAPER_ANSWERS[name])
    return aligned(start, own, PAPER, f"{name}-paper")


def ours(name: str, start: str) -> str:
    """Three alignments, each from the weights of the one before."""
    own = answers_of(start, f"{name}-own", FIRST_ANSWERS[name])
    model = aligned(start, own, ONCE, f"{name}-once")

    sure = ("-o", "commit_threshold=0.95")
    flow = answers_of(model, f"{name}-flow", FLOW_ANSWERS[name], *BY_FLOW, *sure)
    model = aligned(model, flow, ON_POLICY, f"{name}-on-policy")

    sure = ("-o", "commit_threshold=0.9", "-o", "trust=held")
    flow = answers_of(model, f"{name}-flow-2", 6000, *BY_FLOW, *sure)
    return aligned(model, flow, ON_POLICY_2, f"{name}-on-policy-2")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        usage="python recipes/align_embedded.py NAME [START] [--paper]"
    )
    parser.add_argument("name", choices=list(FIRST_ANSWERS))
    parser.add_argument("start", nargs="?", help="a checkpoint; the shipped one without it")
    parser.add_argument("--paper", action="store_true", help="the paper's alignment alone")
    given = parser.parse_args()
    align_with = paper if given.paper else ours
    print("checkpoint:", align_with(given.name, given.start or given.name))

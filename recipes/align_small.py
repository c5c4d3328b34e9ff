"""Align `small` twice on its own right answers, whole and in blocks.

    python recipes/align_small.py                      runs/small/model, over an hour on a core
    python recipes/align_small.py recipes/small-4      from other weights
    python recipes/align_small.py --answers people     only one half of the answers, on another core

Killed, the same command goes on where it was. runs/small-aligned/model is the result. Half of the
requests are as people write them. The first answers are those of threshold decoding, which the flow
equals before alignment; the second are the flow's own. States that lead there are shown too, half
of them in blocks of 32.
"""

import argparse
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from xpredflow.models.embedded import load
from xpredflow.tasks import make_task
from xpredflow.training.align import AlignConfig, align
from xpredflow.training.prompt_sources import TaskPrompts
from xpredflow.training.self_generate import self_generate

RUNS = Path("runs")
SHORT, LONG = ("minicode", "minimath"), ("longcode", "longmath")
SPLITS = ("train", "people")  # in the grammar's words, and as people write
ANSWERS = {SHORT: 800, LONG: 900}  # prompts of each split; the wrong answers are left out
FIRST = AlignConfig(
    updates=300,
    lr=3e-4,
    clean_entropy=0.3,
    on_policy=0.5,
    on_policy_block=32,
    reference_every=4,
    precision="bfloat16",
    dtype="float16",
)


@dataclass(frozen=True)
class Round:
    """An alignment, and who gives the answers."""

    name: str
    decoder: str
    config: AlignConfig
    options: dict[str, Any] = field(default_factory=dict)
    first: int = 0  # number of the first prompt


ROUNDS = (
    Round("small-aligned-1", "threshold:0.97", FIRST),
    Round(
        "small-aligned",
        "flow",
        replace(FIRST, updates=500),
        {"policy": "power:4", "commit_threshold": 0.9, "trust": "held", "budget": "1/4"},
        first=2000,
    ),
)


def answers(this: Round, start: str, splits: tuple[str, ...] = SPLITS) -> list[Path]:
    """The model's own right answers to all four tasks, asked for in both ways."""
    model, files = load(start, dtype="float32"), []
    for names, count in ANSWERS.items():
        tasks = tuple(map(make_task, names))
        for split in splits:
            file = RUNS / f"{this.name}-{'short' if names == SHORT else 'long'}-{split}.jsonl"
            kept = self_generate(
                model,
                TaskPrompts(tasks, split),
                file,
                first=this.first,
                limit=count,
                keep="solved",
                decoder=this.decoder,
                model_name=start,
                **this.options,
            )
            print(f"{file}: {len(kept)} of {count}", flush=True)
            files += [file] if kept else []  # a young model may solve none of the long ones
    return files


def follow(this: Round, start: str) -> str:
    """Answer, then align; the checkpoint that comes of it."""
    out = RUNS / this.name
    if not (out / "model").exists():
        done = align(
            start,
            answers(this, start),
            this.config,
            out=out,
            resume=(out / "state.pt").exists(),
            watch=lambda now: print(now.line(), flush=True),
        )
        print(f"{out}: before {done.before}, after {done.after}")
    return str(out / "model")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        usage="python recipes/align_small.py [START] [--answers SPLIT]"
    )
    parser.add_argument("start", nargs="?", default="runs/small/model", help="a checkpoint")
    parser.add_argument("--answers", choices=SPLITS, help="make these answers and nothing else")
    parser.add_argument("--once", action="store_true", help="the first round alone")
    given = parser.parse_args()
    start = given.start
    for this in ROUNDS[: 1 if given.once else None]:
        if given.answers and not (RUNS / this.name / "model").exists():
            answers(this, start, (given.answers,))
            sys.exit()
        start = follow(this, start)

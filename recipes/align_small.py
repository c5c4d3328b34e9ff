"""Align `small` on its own right answers, whole and in blocks.

    python recipes/align_small.py                      runs/small/model, about 40 minutes on a core
    python recipes/align_small.py recipes/small-3      from other weights
    python recipes/align_small.py --answers people     only one half of the answers, on another core

Killed, the same command goes on where it was. runs/small-aligned/model is the result. Half of the
requests are as people write them. The answers are those of threshold decoding, which the flow
equals before alignment; states that lead there are shown too, half of them in blocks of 32.
"""

import argparse
import sys
from pathlib import Path

from xpredflow.models.embedded import load
from xpredflow.tasks import make_task
from xpredflow.training.align import AlignConfig, align
from xpredflow.training.prompt_sources import TaskPrompts
from xpredflow.training.self_generate import self_generate

RUNS = Path("runs")
SHORT, LONG = ("minicode", "minimath"), ("longcode", "longmath")
SPLITS = ("train", "people")  # in the grammar's words, and as people write
ANSWERS = {SHORT: 800, LONG: 900}  # prompts of each split; the wrong answers are left out
CONFIG = AlignConfig(
    updates=400,
    lr=3e-4,
    clean_entropy=0.3,
    on_policy=0.5,
    on_policy_block=32,
    reference_every=4,
    precision="bfloat16",
    dtype="float16",
)


def answers(start: str, splits: tuple[str, ...] = SPLITS) -> list[Path]:
    """The model's own right answers to all four tasks, asked for in both ways."""
    model, files = load(start, dtype="float32"), []
    for names, count in ANSWERS.items():
        tasks = tuple(map(make_task, names))
        for split in splits:
            file = RUNS / f"small-{'short' if names == SHORT else 'long'}-{split}.jsonl"
            prompts = TaskPrompts(tasks, split)
            kept = self_generate(
                model,
                prompts,
                file,
                limit=count,
                keep="solved",
                decoder="threshold:0.9",
                model_name=start,
            )
            print(f"{file}: {len(kept)} of {count}", flush=True)
            files += [file] if kept else []  # a young model may solve none of the long ones
    return files


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        usage="python recipes/align_small.py [START] [--answers SPLIT]"
    )
    parser.add_argument("start", nargs="?", default="runs/small/model", help="a checkpoint")
    parser.add_argument("--answers", choices=SPLITS, help="make these answers and nothing else")
    given = parser.parse_args()
    if given.answers:
        answers(given.start, (given.answers,))
        sys.exit()
    out = RUNS / "small-aligned"
    done = align(
        given.start,
        answers(given.start),
        CONFIG,
        out=out,
        resume=(out / "state.pt").exists(),
        watch=lambda now: print(now.line(), flush=True),
    )
    print(f"{out}: before {done.before}, after {done.after}")

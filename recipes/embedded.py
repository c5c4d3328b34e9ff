"""Pretrain the embedded models from nothing.

    python recipes/embedded.py tiny          (make train-tiny)       about 3 hours on 2 CPU cores
    python recipes/embedded.py tiny-moe      (make train-tiny-moe)   about 2 hours

Killed, the same command goes on where it was. runs/tiny/model and runs/tiny-moe/model are the
results; docs/embedded.md says in what the shipped weights differ from them. Each model comes from
several runs, every one from the weights of the one before. Both tasks come first, then 256 updates
of nothing but sums, then all together, at last more minimath; docs/log.md has what happened in
other orders.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from copying import start_copying
from sums import Sums

from xpredflow.training.pretrain import PretrainConfig, Stage, pretrain

RUNS = Path("runs")
TASKS = ("minicode", "minimath")
SUMS = Sums()
ONLY_SUMS = Stage(1024, (SUMS,))
TOGETHER = Stage(1280, ("minicode", "minimath", "minicode", "minimath", SUMS))
EVERYTHING = ("minicode", "minimath", "minimath", SUMS, "minicode", "minimath", "minimath")
MORE_MINIMATH = ("minimath", "minicode", "minimath", SUMS, "minimath")


@dataclass(frozen=True)
class Training:
    """One run of pretraining, below runs/."""

    name: str
    config: PretrainConfig
    schedule: tuple[Stage, ...]
    begin: dict[str, Any] = field(default_factory=dict)


def fresh(shape: str) -> dict[str, Any]:
    """Weights that know nothing, but copy what they attend to."""
    return {"model_config": shape, "initialise": start_copying}


def after(name: str) -> dict[str, Any]:
    """The weights that another run ended with."""
    return {"start": RUNS / name / "model"}


RECIPES = {
    "tiny": [
        Training(
            "tiny-1",
            PretrainConfig(updates=8192, decay_share=0.55, tail_share=0.125, whole_from=2560),
            (ONLY_SUMS, TOGETHER, Stage(4608, EVERYTHING)),
            fresh("tiny"),
        ),
        Training(
            "tiny-2",
            PretrainConfig(
                updates=2304,
                seed=1,
                lr=2e-3,
                warmup=100,
                decay_share=0.8,
                tail_share=0.125,
                whole_from=0,
            ),
            (Stage(0, EVERYTHING),),
            after("tiny-1"),
        ),
        Training(
            "tiny",
            PretrainConfig(
                updates=1024,
                seed=2,
                lr=1e-3,
                warmup=100,
                decay_share=0.8,
                tail_share=0.125,
                whole_from=0,
            ),
            (Stage(0, EVERYTHING),),
            after("tiny-2"),
        ),
    ],
    "tiny-moe": [
        Training(
            "tiny-moe-1",
            PretrainConfig(updates=3584, tail_share=0.125, whole_from=2816),
            (ONLY_SUMS, TOGETHER, Stage(2560, EVERYTHING)),
            fresh("tiny-moe"),
        ),
        Training(
            "tiny-moe",
            PretrainConfig(
                updates=768,
                seed=1,
                lr=2e-3,
                warmup=50,
                decay_share=0.85,
                tail_share=0.125,
                whole_from=0,
            ),
            (Stage(0, MORE_MINIMATH),),
            after("tiny-moe-1"),
        ),
    ],
}


def train(training: Training) -> None:
    """Run it to its end, from wherever it is."""
    out = RUNS / training.name
    if (out / "model").exists():
        print(f"{out / 'model'} is there")
        return
    done = pretrain(
        training.config,
        out,
        tasks=TASKS,
        schedule=training.schedule,
        resume=(out / "state.pt").exists(),
        watch=lambda now: print(f"{out}: {now}", flush=True),
        **training.begin,
    )
    print(f"checkpoint: {done.checkpoint}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in RECIPES:
        sys.exit(f"usage: python recipes/embedded.py {'|'.join(RECIPES)}")
    for training in RECIPES[sys.argv[1]]:
        train(training)

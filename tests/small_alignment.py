"""An alignment run of a few steps, and what it logged."""

import json

from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.trainer import Alignment

SMALL = AlignConfig(updates=7, batch=4, warmup=2, lr=3e-3, save_every=3, chunk=13)


def log_of(training: Alignment) -> list[dict]:
    return [json.loads(line) for line in training.run.log_path.open()]

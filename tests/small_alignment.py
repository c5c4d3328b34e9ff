"""An alignment run of a few steps, what it logged, and how two processes run one."""

import json
import os
import subprocess
import sys

from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.trainer import Alignment

SMALL = AlignConfig(updates=7, batch=4, warmup=2, lr=3e-3, save_every=3, chunk=13)
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def together(command: list[str]) -> subprocess.CompletedProcess:
    """A script, or `-m` and a module, in two processes."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*TORCHRUN, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def log_of(training: Alignment) -> list[dict]:
    return [json.loads(line) for line in training.run.log_path.open()]

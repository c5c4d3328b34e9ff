"""An alignment run of a few steps, what it logged, and how two processes run one."""

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.trainer import Alignment

SMALL = AlignConfig(updates=7, batch=4, warmup=2, lr=3e-3, save_every=3, chunk=13)
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def together(command: list[str]) -> subprocess.CompletedProcess:
    """A script, or `-m` and a module, in two processes that torchrun starts."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*TORCHRUN, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def in_two(command: list[str], **more: str) -> list[subprocess.CompletedProcess]:
    """The same as torchrun would start them, without its own third process."""
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    shared = {**os.environ, "LOCAL_WORLD_SIZE": "2", "OMP_NUM_THREADS": "1", **shared, **more}

    def run(rank: str) -> subprocess.CompletedProcess:
        environment = {**shared, "RANK": rank, "LOCAL_RANK": rank}
        return subprocess.run(
            [sys.executable, *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    with ThreadPoolExecutor(2) as both:
        return list(both.map(run, "01"))


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def log_of(training: Alignment) -> list[dict]:
    return [json.loads(line) for line in training.run.log_path.open()]

"""The server that benchmarks ask, in a process of its own."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import NamedTemporaryFile

import psutil

import xpredflow

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
MAX_BATCH = 8
PATIENCE = 900  # seconds for an answer: a machine that does other work beside it may be slow


class Server:
    """`xpredflow serve` in a process of its own."""

    def __enter__(self) -> "Server":
        source = str(Path(xpredflow.__file__).parents[1])
        self.log = NamedTemporaryFile("w+", suffix=".log")
        command = [sys.executable, "-m", "xpredflow", "serve", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--max-batch", str(MAX_BATCH), "--limit", f"max_seconds={PATIENCE}"],
            env={**os.environ, "PYTHONPATH": source},
            stderr=self.log,
        )
        while not (found := re.search(r"listening on (http://[\w.:]+)", self.written())):
            assert self.process.poll() is None, self.written()
            time.sleep(0.1)
        self.url = found[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.code = self.process.wait()
        self.log.close()

    def written(self) -> str:
        """Its log."""
        return Path(self.log.name).read_text()

    @property
    def megabytes(self) -> float:
        """Memory that it holds."""
        return psutil.Process(self.process.pid).memory_info().rss / 2**20

    @property
    def cpu_seconds(self) -> float:
        """What all of its threads have computed."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

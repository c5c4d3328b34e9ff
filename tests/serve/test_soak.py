"""The load of benchmarks/serve.py for some seconds: no answer is wrong, lost or crossed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import xpredflow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "serve.py"


def test_many_clients_of_all_kinds_get_what_the_offline_decode_says() -> None:
    source = str(Path(xpredflow.__file__).parents[1])
    command = [sys.executable, str(SCRIPT), "--seconds", "5", "--clients", "12", "--skip-speed"]
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["wrong"], found["rows left"], found["exit code"]) == (0, 0, 0)
    assert found["answers"] > 0
    assert found["bad"] > 0

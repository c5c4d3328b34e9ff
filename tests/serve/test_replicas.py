"""Two replicas in a Ray cluster of this machine: the same answers, cancels, and a replica's death.

In a process of its own: a cluster's processes shall not outlive the tests, nor share their state.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import xpredflow

SCRIPT = Path(__file__).with_name("two_replicas.py")


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra 'ray'")
def test_two_replicas_answer_as_one_and_one_may_die() -> None:
    places = [str(Path(xpredflow.__file__).parents[1]), str(Path(__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    environment |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 77:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "all well"

"""Processes that share a machine share its cores."""

import subprocess
import sys

import pytest
import torch

from xpredflow import processes

SCRIPT = """
import sys
import torch
from xpredflow import processes
processes.usable_cores = lambda: 6
processes.join_processes()
sys.stdout.write(f"threads {torch.get_num_threads()}\\n")  # in one piece beside the other's
processes.leave_processes()
"""


@pytest.mark.parametrize(
    ("cores", "here", "set_by_user", "threads"),
    [
        (16, "4", None, 4),
        (16, "4", "1", 4),
        (2, "4", None, 1),
        (16, "4", "3", None),
        (16, "1", None, None),
    ],
)
def test_shares_of_the_cores(monkeypatch, cores, here, set_by_user, threads):
    chosen = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(processes, "usable_cores", lambda: cores)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", here)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if set_by_user:
        monkeypatch.setenv("OMP_NUM_THREADS", set_by_user)
    processes._share_cores()
    assert chosen == ([] if threads is None else [threads])


def test_under_torchrun(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc_per_node",
        "2",
        "--standalone",
    ]
    done = subprocess.run([*command, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.count("threads 3") == 2

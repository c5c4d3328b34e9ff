"""What test_align_sharded.py runs in two processes: two_processes.py PLACE

first: a run that goes through, one in bf16, and one that both processes are killed in: children,
which spare the second part the time of importing everything once more.
second: the killed one goes on, from what `left` holds a copy of.
"""

import json
import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from xpredflow.models.experts import Router
from xpredflow.models.spread import own_part
from xpredflow.processes import join_processes, leave_processes
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.start import start_from

CONFIG = AlignConfig(
    updates=4, batch=4, lr=3e-3, warmup=2, save_every=2, chunk=13, checkpointing=True
)


def begin(place: Path, name: str, config: AlignConfig = CONFIG, resume: bool = False) -> Alignment:
    start = start_from(place / "llada2", place / "own.jsonl", "cpu")
    return Alignment(replace(start, load=refuse), config, place / name, resume, join_processes())


def refuse() -> None:
    raise AssertionError("the whole model was asked for")


def first(place: Path) -> None:
    whole = begin(place, "whole")
    list(whole)
    whole.finish(place / "whole/model")
    rounded = begin(place, "rounded", replace(CONFIG, precision="bfloat16"))
    note(place, rounded)
    killed = begin(place, "killed")
    for now in killed:
        if now.step == 3:
            killed.run.wait()
            os.kill(os.getpid(), signal.SIGKILL)


def note(place: Path, training: Alignment) -> None:
    """How much of the weights this process holds, and what matrices and routers are read in."""
    seen: dict[str, set[str]] = {"router": set(), "layer": set()}
    for module in training.objective.model.modules():
        if isinstance(module, Router):
            module.register_forward_hook(lambda m, *_: seen["router"].add(str(m.weight.dtype)))
    layer = next(iter(training.objective.model.trunk()[0]))
    matrix = layer.attention.dense  # type: ignore[union-attr]
    matrix.register_forward_hook(lambda m, *_: seen["layer"].add(str(m.weight.dtype)))  # type: ignore[union-attr]
    list(training)
    parameters = list(training.objective.model.parameters())
    found = {
        "own": sum(own_part(p).numel() for p in parameters),
        "all": sum(p.numel() for p in parameters),
        **{name: sorted(dtypes) for name, dtypes in seen.items()},
    }
    (place / f"rank{training.share.rank}.json").write_text(json.dumps(found))


def until_killed(place: Path) -> None:
    """The first part in a child, which must die of its kill; both have when this ends."""
    child = os.fork()
    if child == 0:
        join_processes()
        first(place)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == -signal.SIGKILL, f"it ended with {code}"
    rank = os.environ["RANK"]
    (place / f"dead{rank}").touch()
    if rank == "0":  # the second part begins when this process joins it
        while not (place / "dead1").exists():
            time.sleep(0.05)
        shutil.copytree(place / "killed", place / "left")
    os.environ["MASTER_PORT"] = os.environ["NEXT_PORT"]


def second(place: Path) -> None:
    again = begin(place, "killed", resume=True)
    assert again.step == 2
    list(again)
    again.finish(place / "killed/model")


if __name__ == "__main__":
    until_killed(Path(sys.argv[1]))
    join_processes()
    second(Path(sys.argv[1]))
    leave_processes()

"""Runs programs written by a model: isolated, limited, and judged by a process they cannot reach.

from xpredflow.sandbox import Sandbox

with Sandbox(workers=2) as box:
    print(box.run("def f(x): return x + 1", [[[1], 2]], entry_point="f").reason)
"""

from xpredflow.sandbox.box import Job, Sandbox
from xpredflow.sandbox.launcher import ISOLATIONS
from xpredflow.tasks.base import Verdict

__all__ = ["ISOLATIONS", "Job", "Sandbox", "Verdict"]

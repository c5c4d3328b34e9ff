"""Tasks: prompts in, verdicts out. They know nothing of models."""

from collections.abc import Callable
from functools import cache

from xpredflow.tasks.minicode import MiniCode
from xpredflow.tasks.minimath import MiniMath
from xpredflow.tasks.splits import Problem, Runner, Task, Verdict

# One instance each: a task draws its held-out problems on first use and keeps them.
TASKS: dict[str, Callable[[], Task]] = {"minicode": cache(MiniCode), "minimath": cache(MiniMath)}

__all__ = ["TASKS", "Problem", "Runner", "Task", "Verdict"]

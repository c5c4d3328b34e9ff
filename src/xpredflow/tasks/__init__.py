"""Tasks: prompts in, verdicts out. They know nothing of models."""

from collections.abc import Callable

from xpredflow.tasks.minicode import MiniCode
from xpredflow.tasks.minimath import MiniMath
from xpredflow.tasks.splits import Problem, Runner, Task, Verdict

TASKS: dict[str, Callable[[], Task]] = {"minicode": MiniCode, "minimath": MiniMath}

__all__ = ["TASKS", "Problem", "Runner", "Task", "Verdict"]

"""How many validation problems a model in training solves, with the plainest decoder."""

from collections.abc import Iterable

from xpredflow.evaluation import Job, evaluate_job
from xpredflow.tasks.base import Runner, Task
from xpredflow.types import Model

PROBLEMS = 24  # of each task: enough to see it learn, cheap enough not to delay it


def probe(model: Model, tasks: Iterable[Task], run: Runner | None) -> dict[str, float]:
    """Full-budget mask prediction; a task whose answers must be run is left out without `run`."""
    solved = {}
    for task in tasks:
        if task.runs_programs and run is None:
            continue
        job = Job(task.name, "validation", "mask", limit=PROBLEMS)
        samples = evaluate_job(model, task, job, run=run)
        solved[task.name] = sum(sample.passed for sample in samples) / len(samples)
    return solved

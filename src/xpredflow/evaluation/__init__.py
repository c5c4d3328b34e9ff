"""Accuracy and passes of a decoder on a task.

from xpredflow import load
from xpredflow.evaluation import evaluate

print(evaluate(load("tiny"), "minimath", decoder="threshold:0.9", limit=20).summary)
"""

from xpredflow.evaluation.run import Evaluation, Watch, evaluate, evaluate_job, judged
from xpredflow.evaluation.samples import Job, Sample
from xpredflow.evaluation.statistics import Paired, Summary, mcnemar, summarise

__all__ = [
    "Evaluation",
    "Job",
    "Paired",
    "Sample",
    "Summary",
    "Watch",
    "evaluate",
    "evaluate_job",
    "judged",
    "mcnemar",
    "summarise",
]

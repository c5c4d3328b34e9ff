"""A task of your own from a file: a row per problem, with its answer or tests and its grader.

    python examples/own_task_file.py

The same on the command line, and with columns and a grader for the whole file:

    xpredflow eval -t examples/own_task.jsonl --split all --response-length 64 -d threshold:0.9
    xpredflow eval -t sums.jsonl --column prompt=question --column answer=gold --grader number
"""

from pathlib import Path

from xpredflow import evaluate, load, make_task

task = make_task(str(Path(__file__).with_name("own_task.jsonl")), response_length=64)
found = evaluate(load("tiny"), task, split="all", decoder="threshold:0.9")
for sample in found.samples:
    print(sample.passed, sample.reason, "|", sample.prompt)
print(f"{found.summary.accuracy:.0%} right in {found.summary.passes_mean:.1f} passes")

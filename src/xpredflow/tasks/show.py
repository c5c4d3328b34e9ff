"""Prints problems with one right answer each.

python -m xpredflow.tasks.show minicode --split test --level 3 -n 5
"""

import argparse
from itertools import count, islice
from random import Random

from xpredflow.tasks.generated.minicode.task import MiniCode
from xpredflow.tasks.generated.minimath.task import MiniMath
from xpredflow.tasks.generated.splits import HELD_OUT, LEVELS, SPLITS

TASKS = {"minicode": MiniCode, "minimath": MiniMath}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m xpredflow.tasks.show", description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--split", choices=SPLITS, default="test")
    parser.add_argument("--level", type=int, choices=LEVELS, help="only this level")
    parser.add_argument("-n", type=int, default=5, help="how many (default 5)")
    options = parser.parse_args()
    task = TASKS[options.task]()
    indices = count() if options.split == "train" else range(HELD_OUT)
    problems = (task.problem(options.split, index) for index in indices)
    wanted = (p for p in problems if options.level in (None, p.level))
    for problem in islice(wanted, options.n):
        print(f"[level {problem.level}] {problem.prompt}")
        print(task.answer(problem, Random(problem.id)), end="\n\n")


if __name__ == "__main__":
    main()

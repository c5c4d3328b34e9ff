"""A task of your own as a class: give it problems and a grade, everything else has a default.

python examples/own_task.py
xpredflow eval -t examples/own_task.py:Purses --split all -d threshold:0.9
"""

from xpredflow import Problem, SimpleTask, evaluate, load


class Purses(SimpleTask):
    """Coins that are bought; only the number after #### counts."""

    response_length = 64

    def problems(self):
        for coins in range(21, 29):
            prompt = f"Ann has {coins} coins, buys 4, loses 3. How many coins now? Use units."
            yield Problem(f"purse {coins}", prompt, meta={"answer": f"#### {coins + 1}"})

    def grade(self, problem: Problem, text: str) -> bool:
        return text.strip().endswith(problem.meta["answer"])


if __name__ == "__main__":
    print(evaluate(load("tiny"), Purses(), split="all", decoder="threshold:0.9").summary)

"""Whole answers with nothing masked, for the tables that probe a model at clean positions."""

from random import Random

from xpredflow.engine.prompts import encode
from xpredflow.experiments.bench import Bench, Plan
from xpredflow.experiments.inputs import Inputs
from xpredflow.tasks import prompt_of
from xpredflow.tasks.base import Generated, Task
from xpredflow.training.common.answer_batches import check_answers
from xpredflow.training.common.answers import Answer, read_answers
from xpredflow.types import Model

PROBLEMS = 64  # of each task, as in the paper


def clean_answers(bench: Bench, inputs: Inputs, model: Model) -> dict[str, list[Answer]]:
    """By their source: a task's right answers to the plan's problems, or those of --answers."""
    count = min(PROBLEMS, bench.plan.limit)
    if inputs.answers is not None:
        found = {inputs.answers.name: read_answers(inputs.answers)[:count]}
    else:
        found = {task.name: _right_answers(task, bench.plan, model) for task in bench.plan.tasks}
    for answers in found.values():
        check_answers(answers, model)
    return found


def _right_answers(task: Task, plan: Plan, model: Model) -> list[Answer]:
    assert isinstance(task, Generated), "the table states that it needs answers"
    count = min(PROBLEMS, plan.problems(task))
    return [_right_answer(task, plan.split, number, model) for number in range(count)]


def _right_answer(task: Generated, split: str, number: int, model: Model) -> Answer:
    """A right answer and its end token; the end tokens that would follow are easy and many."""
    problem = task.problem(split, number)
    text = task.answer(problem, Random(f"clean/{number}"))
    ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    return Answer(
        number=number,
        source=task.name,
        prompt=problem.prompt,
        answer=text,
        prompt_ids=encode(model, prompt_of(problem), chat=None, system=None).ids,
        response_ids=[*ids, model.special.eos],
        passes=0,
    )

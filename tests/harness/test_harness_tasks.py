"""Our task files inside the harness: problems from this machine, graded by the tasks' own score."""

import json
from pathlib import Path
from typing import Any

import pytest
from stand_in import XpredflowLM, checkpoint

from xpredflow.engine.loop import generate
from xpredflow.errors import InputError
from xpredflow.harness.command import TASK_FILES
from xpredflow.harness.documents import problems
from xpredflow.tasks import BENCHMARKS, TASKS, make_task


def mbpp(number: int) -> dict[str, Any]:
    return {
        "task_id": number,
        "text": "Write a function to double a number.",
        "code": f"def double_{number}(x):\n    return 2 * x",
        "test_list": [f"assert double_{number}(2) == 4", f"assert double_{number}(0) == 0"],
        "test_setup_code": "",
    }


def gsm8k(number: int) -> dict[str, str]:
    return {"question": f"What is 3 + {number}?", "answer": f"3 + {number}\n#### {3 + number}"}


HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'def twice(x):\n    """Twice x."""\n',
    "entry_point": "twice",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files in the shape of the published benchmarks, as --metadata names them."""
    folder = tmp_path_factory.mktemp("rows")
    rows = {
        "humaneval": [HUMANEVAL],
        "mbpp": [mbpp(number) for number in (2, 3, 4, 11)],
        "gsm8k_test": [gsm8k(4)],
        "gsm8k_train": [gsm8k(number) for number in range(7400)],  # beside it: the examples
    }
    for name, lines in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    sources = {"humaneval": "humaneval", "mbpp": "mbpp", "gsm8k": "gsm8k_test"}
    return {name: str(folder / f"{file}.jsonl") for name, file in sources.items()}


@pytest.fixture(scope="module")
def manager(files: dict[str, str]) -> Any:
    from lm_eval.tasks import TaskManager

    # without the harness's own tasks, whose files take seconds to read
    return TaskManager(include_path=TASK_FILES, include_defaults=False, metadata={**files})


@pytest.fixture(scope="module")
def tasks(manager: Any) -> dict[str, Any]:
    return manager.load([path.stem for path in TASK_FILES.glob("*.yaml")])["tasks"]


def test_every_task_asks_for_the_length_that_it_declares(tasks: dict[str, Any]) -> None:
    sources = {task.config.dataset_kwargs["problems_of"] for task in tasks.values()}
    assert sources == {*TASKS, *BENCHMARKS}
    for task in tasks.values():
        declared = make_task(task.config.dataset_kwargs["problems_of"]).response_length
        assert task.config.generation_kwargs["max_gen_toks"] == declared


def test_right_answers_count_and_others_do_not(tasks: dict[str, Any]) -> None:
    for name, task in tasks.items():
        doc = task.eval_docs[0]
        assert task.process_results(doc, [task.doc_to_target(doc)]) == {"acc": 1.0}, name
        assert task.process_results(doc, ["no idea"]) == {"acc": 0.0}, name


@pytest.mark.parametrize("name", BENCHMARKS)
def test_prompts_are_the_published_ones(
    name: str, tasks: dict[str, Any], files: dict[str, str]
) -> None:
    benchmark = BENCHMARKS[name](files[name])
    turns = benchmark.prompts("test", "llada-instruct")[0].meta["messages"]
    task = tasks[f"xpredflow_{name}"]
    shown: list[Any] = []
    task.fewshot_context(
        task.eval_docs[0],
        num_fewshot=task.config.num_fewshot,
        apply_chat_template=True,
        fewshot_as_multiturn=True,
        chat_template=lambda messages, **_: shown.extend(messages) or "",
    )
    assert shown == turns
    base = tasks[f"xpredflow_{name}_base"]
    plain = base.fewshot_context(base.eval_docs[0], num_fewshot=0)
    assert plain == benchmark.prompts("test", "llada-base")[0].prompt


def test_a_split_and_a_missing_file() -> None:
    rows = problems(problems_of="minimath", split="validation")["problems"]
    assert len(rows) == 500
    assert rows[3]["id"] == TASKS["minimath"]().problem("validation", 3).id
    with pytest.raises(InputError, match="--metadata mbpp=FILE"):
        problems(problems_of="mbpp")
    with pytest.raises(InputError, match="did you mean 'test'"):
        problems(problems_of="minimath", split="tests")
    with pytest.raises(InputError, match="has no end"):
        problems(problems_of="minimath", split="train")


def test_an_evaluation_is_that_of_the_engine(manager: Any, tmp_path: Path) -> None:
    from lm_eval.evaluator import simple_evaluate

    source = checkpoint(tmp_path)
    lm = XpredflowLM(pretrained=source, decoder="mask", budget=2, gen_length=8)
    lm.model.max_length = 1024
    results: Any = simple_evaluate(
        model=lm,
        tasks=["xpredflow_minimath"],
        task_manager=manager,
        limit=2,
        apply_chat_template=True,
        bootstrap_iters=0,
    )
    answers = [sample["resps"][0][0] for sample in results["samples"]["xpredflow_minimath"]]
    prompts = [TASKS["minimath"]().problem("test", i).prompt for i in range(2)]
    options: dict[str, Any] = {"decoder": "mask", "budget": 2, "gen_length": 8}
    assert answers == [done.text for done in generate(lm.model, prompts, **options)]
    passes = results["config"]["xpredflow"]["forward_passes"]["xpredflow_minimath"]
    assert (passes["answers"], passes["mean"]) == (2, 2.0)

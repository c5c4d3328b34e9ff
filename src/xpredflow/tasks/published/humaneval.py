"""HumanEval: complete a function from its signature and docstring; graded by hidden checks."""

from collections.abc import Mapping, Sequence
from typing import Any

from xpredflow.tasks.base import Message, Problem, Runner, Verdict, needs_runner
from xpredflow.tasks.published.benchmark import Benchmark, Template
from xpredflow.tasks.published.code_extraction import first_fenced_block, indented_continuation
from xpredflow.tasks.rows import Rows


def _instruct(row: Mapping[str, Any], shots: Sequence[Mapping[str, Any]]) -> list[Message]:
    content = f"Complete the following python code:\n{row['prompt']}"
    return [{"role": "user", "content": content}]


def _base(row: Mapping[str, Any], shots: Sequence[Mapping[str, Any]]) -> str:
    return row["prompt"]


class HumanEval(Benchmark):
    """164 problems, 0-shot."""

    name = "humaneval"
    response_length = 512
    hub_id = "openai/openai_humaneval"
    fields = dict.fromkeys(("task_id", "prompt", "entry_point", "canonical_solution", "test"), str)
    templates = {  # noqa: RUF012
        "llada-instruct": Template(_instruct, first_fenced_block),
        "llada-base": Template(_base, indented_continuation),
    }

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """The verdict of `run` (a sandbox) on the prompt's code with the answer behind it."""
        # As human-eval does it: an answer that repeats the whole function replaces the stub.
        program = problem.meta["setup"] + self.extract(problem, text)
        return needs_runner(self.name, run)(program, problem.meta)

    def published_answer(self, problem: Problem) -> str:
        row = self._by_id[problem.id]
        if problem.meta["template"] == "llada-base":
            return row["canonical_solution"]
        return f"```python\n{row['prompt']}{row['canonical_solution']}\n```"

    def _grading(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "entry_point": row["entry_point"],
            # Some checks call a helper that the prompt defines. It comes from the prompt, not
            # from the program, which could define another one.
            "setup": row["prompt"],
            "names": [row["entry_point"]],
            "aliases": ["candidate"],
            "tests": f"{row['test']}\ncheck(candidate)\n",
        }

    def _id(self, row: Mapping[str, Any]) -> str:
        return row["task_id"]

    def _load(self) -> dict[str, Rows]:
        return {"test": self._read("openai_humaneval/test-00000-of-00001.parquet")}

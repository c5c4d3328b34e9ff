"""What a task is: problems with prompts, and verdicts on texts. It knows nothing of models."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, runtime_checkable

from xpredflow.errors import InputError

Message = dict[str, str]


@dataclass(frozen=True)
class Problem:
    """One problem: `id` names its meaning, `meta` holds what grading needs (plain JSON)."""

    id: str
    prompt: str
    level: int
    meta: Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and one sentence that says why."""

    passed: bool
    reason: str


# Runs untrusted program text against `Problem.meta`; a sandbox provides it.
Runner = Callable[[str, Mapping[str, Any]], Verdict]


@runtime_checkable
class Task(Protocol):
    """What evaluation needs of a task."""

    @property
    def name(self) -> str: ...

    @property
    def response_length(self) -> int: ...

    @property
    def runs_programs(self) -> bool: ...  # whether `score` needs a Runner

    def problem(self, split: str, index: int) -> Problem: ...

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict: ...

    def size(self, split: str) -> int: ...

    def count_problems(self) -> int: ...


@runtime_checkable
class Generated(Task, Protocol):
    """A task that training can draw on without end, with right answers."""

    def answer(self, problem: Problem, rng: Random) -> str: ...


def prompt_of(problem: Problem) -> str | list[Message]:
    """What the model is given: the turns of a chat where the template has turns, else the text."""
    return problem.meta.get("messages", problem.prompt)


def needs_runner(name: str, run: Runner | None) -> Runner:
    if run is None:
        raise InputError(f"{name} runs programs: pass run=, a sandbox's runner")
    return run

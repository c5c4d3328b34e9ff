"""What a task is: problems with prompts, and verdicts on texts. It knows nothing of models."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from random import Random
from typing import Any, Protocol, runtime_checkable

from xpredflow.errors import InputError, unknown_name

Message = dict[str, str]
RESPONSE_LENGTH = 256  # of a task that says nothing of it


@dataclass(frozen=True)
class Problem:
    """One problem: `id` names its meaning, `meta` holds what grading needs (plain JSON).

    Of `meta`, three keys mean something to everyone: `messages`, a conversation that is asked
    instead of the prompt; `answer`, a right one; `split`, where the problem belongs.
    """

    id: str
    prompt: str
    level: int = 1
    meta: Mapping[str, Any] = field(default_factory=dict)


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


class SimpleTask(ABC):
    """A task of one's own: give it `problems` and `grade`, everything else has a default.

    class Capitals(SimpleTask):
        response_length = 16

        def problems(self):
            yield Problem("fr", "Capital of France?", meta={"answer": "Paris"})

        def grade(self, problem, text):
            return text.strip() == problem.meta["answer"]

    A problem belongs to the split that its `meta` names, else to one that its prompt decides: 80 %
    train, 10 % validation, 10 % test; `all` is every problem. A task whose answers are programs
    sets `runs_programs` and overrides `score`, which is handed the sandbox's runner.
    """

    name: str = ""  # the class's unless said otherwise
    response_length: int = RESPONSE_LENGTH
    runs_programs: bool = False
    digest: str = ""  # tells the problems apart from what a file of the same name held before

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    @abstractmethod
    def problems(self) -> Iterable[Problem]:
        """Every problem, each time in the same order."""

    @abstractmethod
    def grade(self, problem: Problem, text: str) -> bool | Verdict:
        """Whether a text answers the problem."""

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """The grade as a verdict."""
        found = self.grade(problem, text)
        return found if isinstance(found, Verdict) else Verdict(bool(found), _word(bool(found)))

    def answer(self, problem: Problem, rng: Random) -> str:
        """The right answer that the problem carries."""
        if "answer" not in problem.meta:
            raise InputError(f"problem {problem.id!r} of {self.name!r} carries no answer")
        return str(problem.meta["answer"])

    def problem(self, split: str, index: int) -> Problem:
        found = self._of(split)
        if not 0 <= index < len(found):
            raise InputError(f"no problem {index} in {self.name} {split}: it has {len(found)}")
        return found[index]

    def size(self, split: str) -> int:
        return len(self._of(split))

    def count_problems(self) -> int:
        return len(self._splits["all"])

    def _of(self, split: str) -> list[Problem]:
        if split not in self._splits:
            raise unknown_name("split", split, self._splits, f" of task {self.name!r}")
        return self._splits[split]

    @cached_property
    def _splits(self) -> dict[str, list[Problem]]:
        every = list(self.problems())
        for number, problem in enumerate(every, start=1):
            if not isinstance(problem, Problem):
                raise InputError(
                    f"problem {number} of task {self.name!r} is {problem!r:.60}: problems() must"
                    " yield Problem(id, prompt, meta={...})"
                )
        if not every:
            raise InputError(f"task {self.name!r} has no problems")
        named = any("split" in problem.meta for problem in every)
        splits: dict[str, list[Problem]] = {"all": every}
        splits |= {} if named else {"train": [], "validation": [], "test": []}
        for problem in every:
            own = problem.meta.get("split") or split_of_text(str(prompt_of(problem)))
            splits.setdefault(str(own), []).append(problem)
        return splits


def _word(passed: bool) -> str:
    return "right" if passed else "wrong"


def split_of_text(text: str) -> str:
    """The split that a prompt falls to, the same in every process: 80, 10 and 10 %."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return {8: "validation", 9: "test"}.get(int.from_bytes(digest, "big") % 10, "train")


def right_answer(task: Task, problem: Problem) -> str:
    """One right answer, always the same; nothing where the task knows none."""
    published = getattr(task, "published_answer", None)
    if published is not None:
        return published(problem)
    try:
        return task.answer(problem, Random(problem.id)) if isinstance(task, Generated) else ""
    except InputError:
        return ""

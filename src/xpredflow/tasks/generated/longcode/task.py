"""longcode: a request for several Python functions that call each other, graded by running."""

from random import Random

from xpredflow.tasks.base import Problem, Runner, Verdict, needs_runner
from xpredflow.tasks.generated.longcode.answers import STYLES, write
from xpredflow.tasks.generated.minicode import draw as drawing
from xpredflow.tasks.generated.minicode.pipeline import Pipeline, parse
from xpredflow.tasks.generated.minicode.task import hidden_tests, request
from xpredflow.tasks.generated.splits import (
    LONG_RESPONSE_LENGTH,
    Drawer,
    draw_digest,
    generated_size,
)


class LongCode:
    """Filter, change and reduce lists, in three to five functions that call each other."""

    name = "longcode"
    response_length = LONG_RESPONSE_LENGTH
    runs_programs = True

    def __init__(self, draw: int = 0) -> None:
        """`draw` other than 0: validation and test problems that were never published."""
        self._draw = Drawer(self.name, drawing.draw_long, accept=Pipeline.is_sound, number=draw)
        self.digest = draw_digest(draw)

    def problem(self, split: str, index: int) -> Problem:
        """The problem at an index: train is endless, validation and test have 500 each."""
        pipeline, level, rng = self._draw(split, index)
        style = rng.choice([*STYLES])
        pipeline, prompt = request(pipeline, style, split, rng)
        meta = {"entry_point": pipeline.name, "tests": hidden_tests(pipeline), "style": style}
        return Problem(pipeline.id, prompt, level, meta)

    def answer(self, problem: Problem, rng: Random) -> str:
        """One of the right answers in the style asked for, names drawn uniformly."""
        return write(parse(problem.id), problem.meta["style"], rng)

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """The verdict of `run` (a sandbox) on the program and the problem's hidden tests."""
        return needs_runner(self.name, run)(text, problem.meta)

    def size(self, split: str) -> int:
        """How many problems a split has."""
        return generated_size(split)

    def count_problems(self) -> int:
        """A lower bound of the number of distinct problems: minicode's shorter ones."""
        return drawing.count_problems()

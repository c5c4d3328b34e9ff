"""minicode: a request for a Python function, graded by running hidden tests."""

from random import Random
from typing import Any

from xpredflow.tasks.base import Problem, Runner, Verdict, needs_runner
from xpredflow.tasks.generated import people
from xpredflow.tasks.generated.minicode import draw as drawing
from xpredflow.tasks.generated.minicode import phrasing
from xpredflow.tasks.generated.minicode.answers import STYLES, write
from xpredflow.tasks.generated.minicode.pipeline import SAMPLES, Pipeline, parse
from xpredflow.tasks.generated.splits import RESPONSE_LENGTH, Drawer, draw_digest, generated_size

SIZES = (1, 3, 5, 7)  # short lists tell "largest" and "smallest" of similar pipelines apart
CONSTANTS = (2, 3, 5, 7)


class MiniCode:
    """Filter, change and reduce lists of numbers or words."""

    name = "minicode"
    response_length = RESPONSE_LENGTH
    runs_programs = True
    styles, write, pipelines = STYLES, staticmethod(write), staticmethod(drawing.draw)

    def __init__(self, draw: int = 0) -> None:
        """`draw` other than 0: validation and test problems that were never published."""
        self._draw = Drawer(self.name, self.pipelines, accept=Pipeline.is_sound, number=draw)
        self.digest = draw_digest(draw)

    def problem(self, split: str, index: int) -> Problem:
        """The problem at an index: train is endless, validation and test have 500 each."""
        pipeline, level, rng = self._draw(split, index)
        style = rng.choice([*self.styles])
        pipeline, prompt = request(pipeline, style, split, rng)
        meta = {"entry_point": pipeline.name, "tests": hidden_tests(pipeline), "style": style}
        return Problem(pipeline.id, prompt, level, meta)

    def answer(self, problem: Problem, rng: Random) -> str:
        """One of the right answers in the style asked for, names drawn uniformly."""
        return self.write(parse(problem.id), problem.meta["style"], rng)

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """The verdict of `run` (a sandbox) on the program and the problem's hidden tests."""
        return needs_runner(self.name, run)(text, problem.meta)

    def size(self, split: str) -> int:
        """How many problems a split has."""
        return generated_size(split)

    def count_problems(self) -> int:
        """A lower bound of the number of distinct problems."""
        return drawing.count_problems()


def request(pipeline: Pipeline, style: str, split: str, rng: Random) -> tuple[Pipeline, str]:
    """The prompt in the words that belong to a split, and the pipeline by the names in it."""
    if split not in people.SPLITS:
        return pipeline, drawing.request(pipeline, style, rng)
    reserved = split == "paraphrase"
    pipeline = phrasing.rename(pipeline, rng, reserved)
    return pipeline, phrasing.ask(pipeline, style, rng, reserved)


def hidden_tests(pipeline: Pipeline) -> list[list[Any]]:
    """Eight pairs of arguments and expected value: edge cases and random lists, fixed by the id."""
    rng = Random(pipeline.id)
    pool = SAMPLES[pipeline.family.name]
    twice = rng.sample(pool, 4)
    start = rng.randrange(len(pool))
    everything = pool[start:] + pool[:start]
    lists = [[], everything, everything[: len(pool) // 2], twice + twice]
    lists += [rng.choices(pool, k=size) for size in SIZES]
    if not pipeline.takes_k:
        return [[[values], pipeline.run(values)] for values in lists]
    constants = rng.choices(CONSTANTS, k=len(lists))
    pairs = zip(lists, constants, strict=True)
    return [[[values, k], pipeline.run(values, k)] for values, k in pairs]

"""Pretrain the embedded model `small`, which begins as `tiny` and learns the long tasks too.

    torchrun --nproc_per_node 2 recipes/small.py                from recipes/small-4: two hours
    torchrun --nproc_per_node 2 recipes/small.py --from-tiny    all of it: hours on 2 cores

Killed, the same command goes on where it was. runs/small/model is the result, and shipping.py makes
it what comes with the package. The vocabulary gets more tokens, spells every word alike wherever it
stands (spelling.py), so that any can be copied, and the model gets more width and depth. The second
run begins with programs of several functions, until the names in them agree; in some updates each
token is learned from all that stands before it (block_share). The third is mostly of what people
write, and the last mostly of long word problems. The third begins with the weights in small-4,
which earlier versions of this recipe had ended with, rounded; docs/embedded.md says how they were
made.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random

from growing import extend_tokenizer, grow
from spelling import spell_alike
from sums import Sums

from xpredflow.models import save
from xpredflow.models.embedded import assets, load
from xpredflow.models.machine import multiplies_bfloat16
from xpredflow.processes import from_first, join_processes
from xpredflow.tasks import GENERATED, Generated, Problem
from xpredflow.tasks.generated.longmath.story import LARGEST_TOTAL
from xpredflow.training.pretrain import PretrainConfig, Stage, pretrain

RUNS = Path("runs")
KEPT = Path(__file__).parent / "small-4"  # weights on the way
SHAPE = {"d_model": 160, "n_heads": 5, "n_kv_heads": 5, "n_layers": 8, "mlp_hidden_size": 480}
VOCABULARY = 1280
EXAMPLES = 3000  # of each task, that the vocabulary is learned from


class AsPeopleWrite:
    """A task whose training requests come in many words, with names that nobody knows."""

    def __init__(self, task: Generated) -> None:
        self.task = task
        self.name, self.response_length = f"{task.name}-people", task.response_length

    def problem(self, split: str, index: int) -> Problem:
        """A training problem, whatever split is asked for."""
        return self.task.problem("people", index)

    def answer(self, problem: Problem, rng: Random) -> str:
        """One of its right answers."""
        return self.task.answer(problem, rng)


TASKS: list[Generated] = [make() for make in GENERATED.values()]
CODE, MATH, LONG_CODE, LONG_MATH = map(AsPeopleWrite, TASKS)
SHORT_FIRST = (CODE, MATH, "minicode", "minimath", CODE, MATH, "longcode", "longmath")
EVERYTHING = (CODE, MATH, "longcode", "longmath", LONG_CODE, LONG_MATH, Sums(LARGEST_TOTAL))
EVERYTHING += ("minicode", MATH, LONG_CODE, LONG_MATH, "longcode", "longmath", "minimath")
NAMES_FIRST = ("longcode", LONG_CODE, "longcode", "minicode", "longcode", LONG_CODE, "minimath")
NAMES_FIRST += (CODE,)
LONG_ANSWERS = ("longcode", LONG_CODE, "longmath", LONG_MATH, "minicode", CODE, MATH, LONG_CODE)
LONG_ANSWERS += ("longcode", LONG_MATH, "longmath", CODE, "minimath", MATH, LONG_CODE, LONG_MATH)
AS_PEOPLE = (LONG_CODE, LONG_MATH, CODE, MATH, LONG_CODE, LONG_MATH, "longmath", "minicode")
AS_PEOPLE += (LONG_MATH, Sums(LARGEST_TOTAL), LONG_CODE, MATH, "longcode", CODE, LONG_MATH)
AS_PEOPLE += ("longmath", "minimath")
MANY_WORDS = (LONG_CODE, LONG_MATH, CODE, MATH, LONG_CODE, LONG_MATH, CODE, "longmath", MATH)
MANY_WORDS += (CODE, LONG_MATH, "minicode", LONG_CODE, "longmath", "minimath", CODE, "longcode")
MOSTLY_WORKED = ("longmath", LONG_CODE, LONG_MATH, CODE, "longmath", MATH, LONG_MATH, "longcode")
MOSTLY_WORKED += ("longmath", CODE, LONG_MATH, LONG_CODE, "minimath", LONG_MATH, MATH, "minicode")
FIRST = PretrainConfig(
    updates=5760,
    batch=32,
    lr=3e-3,
    warmup=200,
    decay_share=0.48,
    tail_share=0.125,
    whole_from=4608,
    probe_every=0,
    bf16=multiplies_bfloat16(),
)
SECOND = PretrainConfig(
    updates=8000,
    batch=32,
    seed=6,
    lr=2e-3,
    warmup=64,
    decay_share=0.5,
    block_share=0.25,
    tail_share=0.125,
    whole_from=6800,
    probe_every=0,
    bf16=multiplies_bfloat16(),
    compile=True,
    ema=0.995,
)
THIRD = replace(SECOND, updates=6656, seed=7, decay_share=0.6, block_share=0.125, whole_from=5376)
LAST = replace(THIRD, updates=4200, seed=8, lr=1.5e-3, block_share=0.5, whole_from=3400)
KNOWN = 20  # how often a word must stand in the examples to be known with its space
SCHEDULE = (Stage(0, SHORT_FIRST), Stage(640, EVERYTHING))
SECOND_SCHEDULE = (Stage(0, NAMES_FIRST), Stage(1024, LONG_ANSWERS), Stage(3072, AS_PEOPLE))
THIRD_SCHEDULE = (Stage(0, MANY_WORDS),)
LAST_SCHEDULE = (Stage(0, MOSTLY_WORKED),)


def begin(directory: Path) -> Path:
    """`tiny` with a longer vocabulary, spelt alike, and more room, as a checkpoint."""
    share = join_processes()
    if share.rank == 0 and not (directory / "config.json").exists():
        extend_tokenizer(assets("tiny"), _all_texts(), VOCABULARY, directory / "extended")
        spell_alike(directory / "extended", _all_texts(), KNOWN, directory)
        save(grow(load("tiny", dtype="float32"), directory, SHAPE, seed=0), directory)
    from_first(share, None)
    return directory


def _all_texts() -> Iterator[str]:
    sources = chain.from_iterable((task, AsPeopleWrite(task)) for task in TASKS)
    return chain.from_iterable(map(_texts, sources))


def _texts(source: Generated | AsPeopleWrite) -> list[str]:
    problems = [source.problem("train", index) for index in range(EXAMPLES)]
    answers = [source.answer(problem, Random(i)) for i, problem in enumerate(problems)]
    return [problem.prompt for problem in problems] + answers


def train(out: Path, config: PretrainConfig, start: Path, schedule: tuple[Stage, ...]) -> None:
    """Run it to its end, from wherever it is."""
    if (out / "model" / "config.json").exists():
        return
    done = pretrain(
        config,
        out,
        tasks=tuple(GENERATED),
        start=start,
        schedule=schedule,
        resume=(out / "state.pt").exists(),
        watch=lambda now: print(now, flush=True) if join_processes().rank == 0 else None,
    )
    print(f"checkpoint: {done.checkpoint}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage="torchrun recipes/small.py [--from-tiny]")
    parser.add_argument("--from-tiny", action="store_true", help="not from recipes/small-4")
    start = KEPT
    if parser.parse_args().from_tiny:
        train(RUNS / "small-1", FIRST, begin(RUNS / "small-1" / "start"), SCHEDULE)
        train(RUNS / "small-2", SECOND, RUNS / "small-1" / "model", SECOND_SCHEDULE)
        start = RUNS / "small-2" / "model"
    train(RUNS / "small-3", THIRD, start, THIRD_SCHEDULE)
    train(RUNS / "small", LAST, RUNS / "small-3" / "model", LAST_SCHEDULE)

"""Pretrain the embedded model `small`, which begins as `tiny` and learns the long tasks too.

    python recipes/small.py --first    the first run: about 2 hours on a core
    torchrun --nproc_per_node 2 recipes/small.py
                                       two more, from what it ended with: 80 minutes on 2 cores

Killed, the same command goes on where it was. runs/small/model is the result. The vocabulary gets
more tokens, the model more width and depth, and from then on all four tasks are trained, half of
the requests as people write them. The weights that the first run ended with are kept beside this
script, rounded (shipping.py), so that the others can begin anywhere. Before the third the tokenizer
learns to spell every word alike wherever it stands (spelling.py), so that any can be copied.
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
from xpredflow.processes import from_first, join_processes
from xpredflow.tasks import GENERATED, Generated, Problem
from xpredflow.tasks.generated.longmath.story import LARGEST_TOTAL
from xpredflow.training.pretrain import PretrainConfig, Stage, pretrain

RUNS = Path("runs")
KEPT = Path(__file__).parent / "small-1"  # what the first run ended with
SHAPE = {"d_model": 160, "n_heads": 5, "n_kv_heads": 5, "n_layers": 8, "mlp_hidden_size": 480}
VOCABULARY = 1280
EXAMPLES = 3000  # of each task, that the vocabulary is learned from


class AsPeopleWrite:
    """A task whose training requests come in many words, with names that nobody knows."""

    def __init__(self, task: str) -> None:
        self.task: Generated = GENERATED[task]()
        self.name, self.response_length = f"{task}-people", self.task.response_length

    def problem(self, split: str, index: int) -> Problem:
        """A training problem, whatever split is asked for."""
        return self.task.problem("people", index)

    def answer(self, problem: Problem, rng: Random) -> str:
        """One of its right answers."""
        return self.task.answer(problem, rng)


CODE, MATH, LONG_CODE, LONG_MATH = (AsPeopleWrite(name) for name in GENERATED)
SUMS = Sums(LARGEST_TOTAL)
SHORT_FIRST = (CODE, MATH, "minicode", "minimath", CODE, MATH, "longcode", "longmath")
EVERYTHING = (CODE, MATH, "longcode", "longmath", LONG_CODE, LONG_MATH, SUMS)
EVERYTHING += ("minicode", MATH, LONG_CODE, LONG_MATH, "longcode", "longmath", "minimath")
FIRST = PretrainConfig(
    updates=5760,
    batch=32,
    lr=3e-3,
    warmup=200,
    decay_share=0.48,
    tail_share=0.125,
    whole_from=4608,
    probe_every=0,
    bf16=True,
)
SECOND = replace(FIRST, updates=1792, batch=48, seed=1, decay_share=0.0, whole_from=1792)
THIRD = replace(SECOND, updates=2944, seed=2, lr=2.4e-3, warmup=64, decay_share=0.97)
THIRD = replace(THIRD, whole_from=2496)
KNOWN = 20  # how often a word must stand in the examples to be known with its space
SCHEDULE = (Stage(0, SHORT_FIRST), Stage(640, EVERYTHING))


def begin(directory: Path) -> Path:
    """`tiny` with a longer vocabulary and more room, as a checkpoint."""
    if not (directory / "config.json").exists():
        extend_tokenizer(assets("tiny"), _all_texts(), VOCABULARY, directory)
        save(grow(load("tiny", dtype="float32"), directory, SHAPE, seed=0), directory)
    return directory


def respell(checkpoint: Path, directory: Path) -> Path:
    """The same model with a tokenizer that spells every word alike, as a checkpoint."""
    share = join_processes()
    if share.rank == 0 and not (directory / "config.json").exists():
        spell_alike(checkpoint, _all_texts(), KNOWN, directory)
        save(grow(load(str(checkpoint), dtype="float32"), directory, {}, seed=0), directory)
    from_first(share, None)
    return directory


def _all_texts() -> Iterator[str]:
    tasks: list[Generated] = [make() for make in GENERATED.values()]
    sources = chain.from_iterable((task, AsPeopleWrite(task.name)) for task in tasks)
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
    parser = argparse.ArgumentParser(usage="python recipes/small.py [--first]")
    parser.add_argument("--first", action="store_true", help="from tiny, not from the first run")
    if parser.parse_args().first:
        train(RUNS / "small-1", FIRST, begin(RUNS / "small-1" / "start"), SCHEDULE)
    else:
        everything = (Stage(0, EVERYTHING),)
        train(RUNS / "small-2", SECOND, KEPT, everything)
        start = respell(RUNS / "small-2" / "model", RUNS / "small" / "start")
        train(RUNS / "small", THIRD, start, everything)

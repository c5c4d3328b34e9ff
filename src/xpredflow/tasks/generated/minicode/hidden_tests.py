"""The calls a minicode answer must get right: edge cases and random lists, fixed by the id."""

from random import Random
from typing import Any

from xpredflow.tasks.generated.minicode.pipeline import SAMPLES, Pipeline

SIZES = (1, 3, 5, 7)  # short lists tell "largest" and "smallest" of similar pipelines apart
CONSTANTS = (2, 3, 5, 7)


def hidden_tests(pipeline: Pipeline) -> list[list[Any]]:
    """Eight pairs of arguments and expected value."""
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

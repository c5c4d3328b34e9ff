"""The recipe gives the batches and losses that it gave when the embedded models were made.

The figures were taken from the code that pretrained them, before the recipe left the package; only
`batch` and `tokenizer_examples` are smaller here.
"""

import hashlib
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from embedded import RECIPES, TASKS, Training

from xpredflow.training.pretrain.batches import make_source
from xpredflow.training.pretrain.trainer import Pretraining

BATCHES = {
    "tiny-1": {
        0: "e7c28289e07f3aac",
        1024: "96a764753aabd7f8",
        1280: "d0aa3c89397163a6",
        2816: "6bd2727d5a0b00ac",
        4608: "3f62c5df328fd98e",
    },
    "tiny-moe-1": {
        0: "e7c28289e07f3aac",
        1024: "96a764753aabd7f8",
        1280: "d0aa3c89397163a6",
        2816: "4c6568ffe93a17b3",
        4608: "3f62c5df328fd98e",
    },
}
# eight updates from the start, then four from update 2816 on, where tails and whole batches begin
LOSSES = {
    "tiny-1": [
        6.292596340179443,
        6.173791408538818,
        7.109706878662109,
        6.36083459854126,
        6.791569232940674,
        6.784755706787109,
        6.44993782043457,
        7.831489562988281,
        5.4203267097473145,
        3.985091209411621,
        5.458041191101074,
        3.8501951694488525,
    ],
    "tiny-moe-1": [
        5.1136884689331055,
        5.662199974060059,
        6.549132823944092,
        4.364286422729492,
        5.253965854644775,
        6.195614337921143,
        6.395430564880371,
        6.082141876220703,
        6.5366597175598145,
        6.04795503616333,
        6.5529704093933105,
        5.971071720123291,
    ],
}
FURTHER = [
    4.996983051300049,
    5.944147109985352,
    6.316385746002197,
    6.400827884674072,
    4.50426721572876,
    5.35961389541626,
    6.330699920654297,
    6.2070746421813965,
]


def begin(training: Training, out: Path, **changes) -> Pretraining:
    config = replace(training.config, batch=4, tokenizer_examples=1200)
    sources = tuple(make_source(name) for name in TASKS)
    made = {"schedule": training.schedule, **training.begin, **changes}
    made |= {"start": str(made["start"])} if "start" in made else {}
    return Pretraining(config, out, sources, **made)


def losses(training: Pretraining, first: int, count: int) -> list[float]:
    training.step, found = first, []
    for batch in training._batches()[:count]:
        found.append(training._train_on(batch)[0])
        training.step += 1
    return found


@pytest.mark.parametrize("model", RECIPES)
def test_batches_and_losses_are_those_of_the_embedded_models(model: str, tmp_path: Path) -> None:
    training = begin(RECIPES[model][0], tmp_path)
    for step, expected in BATCHES[f"{model}-1"].items():
        training.step = step
        rows = [[batch.ids.tolist(), batch.response.tolist()] for batch in training._batches()]
        assert hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16] == expected, step
    found = losses(training, 0, 8) + losses(training, 2816, 4)
    assert found == pytest.approx(LOSSES[f"{model}-1"], rel=1e-3)  # other CPUs round differently


def test_a_further_run_is_the_same_too(tmp_path: Path) -> None:
    first, second, _ = RECIPES["tiny"]
    once = begin(replace(first, config=replace(first.config, updates=16)), tmp_path / "one")
    list(once)
    once.finish(tmp_path / "model", torch.float16)
    training = begin(second, tmp_path / "two", start=tmp_path / "model")
    assert losses(training, 0, 8) == pytest.approx(FURTHER, rel=1e-3)


def test_every_run_begins_where_the_one_before_ended() -> None:
    for runs in RECIPES.values():
        for before, after in pairwise(runs):
            assert after.begin == {"start": Path("runs") / before.name / "model"}

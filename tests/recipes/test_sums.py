"""The exercise in sums: right, within the range of minimath, and only its results are asked for."""

import re
from pathlib import Path
from random import Random

import torch
from sums import Sums

from xpredflow.tasks.generated.minimath.story import LARGEST_SUM, SMALLEST
from xpredflow.tasks.generated.minimath.task import MiniMath
from xpredflow.training.common.masking import draw_masks
from xpredflow.training.pretrain.config import PretrainConfig
from xpredflow.training.pretrain.trainer import Pretraining, Stage


def test_exercises_in_sums_are_right_and_within_the_range_of_minimath() -> None:
    exercise, signs = Sums(), set()
    for index in range(500):
        problem = exercise.problem("train", index)
        pieces = exercise.answer(problem, Random(0))
        assert [wanted for _, wanted in pieces] == [False, True] * (len(pieces) // 2)
        lines = "".join(text for text, _ in pieces).splitlines()
        for line in lines:
            [(a, sign, b, value)] = re.findall(r"^(\d+)([-+*/])(\d+)=(\d+)$", line)
            exact = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__truediv__}
            assert exact[sign](int(a), int(b)) == int(value)
            assert SMALLEST <= int(value) <= LARGEST_SUM
            signs.add(sign)
    assert signs == set("+-*/")


def test_what_is_given_in_an_exercise_is_never_masked(tmp_path: Path) -> None:
    small = PretrainConfig(updates=16, batch=4, tokenizer_examples=1200)
    sums = (Stage(0, (Sums(),)),)
    training = Pretraining(small, tmp_path, (MiniMath(),), model_config="tiny", schedule=sums)
    tokenizer, eos = training.mixture.tokenizer, training.model.special.eos
    for batch in training._batches():
        noise = draw_masks(batch, None, eos, torch.Generator().manual_seed(0), cut_share=0.5)
        for ids, masked, response in zip(batch.ids, noise.masked, batch.response, strict=True):
            assert not (masked & ~response).any()
            given = tokenizer.decode(ids[~response].tolist())
            learned = tokenizer.decode(ids[response & (ids != eos)].tolist())
            assert given.count("=") == len(learned.split()) == 7

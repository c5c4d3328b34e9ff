"""DAEDAL's length adjustment: room grows until the text would end, and looks are passes."""

from typing import Any

import pytest
import torch
from toy import EOS, MASK, ToyModel, prompts

from xpredflow import InputError, generate
from xpredflow.decoders import DECODERS
from xpredflow.engine.length import end_confidence
from xpredflow.engine.loop import make_rows
from xpredflow.engine.request import resolve


class Ending(ToyModel):
    """Predicts the end of the text, with c near 1, `text` positions behind the prompt's end."""

    def __init__(self, text: int) -> None:
        super().__init__()
        self.text = text
        self.lengths: list[int] = []

    def logits(self, inputs, positions, columns, cache=None, slots=None):
        found = super().logits(inputs, positions, columns).clone()
        self.lengths.append(positions.shape[1])
        ended = positions.gather(1, columns) >= self.prompt + self.text
        found[..., EOS] = torch.where(ended, 60.0, -60.0)
        return found

    prompt = 5


PROMPT = [[1, 2, 3, 4, 5]]


def rows_of(model: ToyModel, **options):
    return make_rows(model, PROMPT, resolve("mask", options)[0])


def test_confidence_in_the_end_is_that_of_the_last_end_tokens() -> None:
    assert end_confidence([0.0, 0.9, 0.0, 0.8, 0.5], 2) == pytest.approx((0.8 + 0.5) / 2)
    assert end_confidence([0.0, 0.9, 0.0, 0.8], 4) == pytest.approx(1.7 / 4)  # two are missing
    assert end_confidence([0.0], 4) == 0


def test_room_is_added_until_the_text_would_end() -> None:
    # half of 8 end tokens are wanted behind 10 of text: 14 positions, in steps of 4 from 4 on
    model = Ending(10)
    options: dict[str, Any] = {
        "gen_length": 4,
        "max_gen_length": 60,
        "expansion_factor": 4,
        "eos_check_tokens": 8,
    }
    [row] = rows_of(model, **options)
    assert model.lengths == [5 + n for n in (4, 8, 12, 16)]
    assert (len(row.blocks[0]), row.looks) == (16, 4)
    # half as many end tokens stand behind the response, and are no part of it
    assert row.ids[5:].tolist() == [MASK] * 16 + [EOS] * 4
    assert row.length == 21
    model = Ending(10)
    [done] = generate(model, PROMPT, decoder="mask", budget=3, **options)
    assert done.passes == len(model.lengths) == 4 + 3
    assert len(done.all_ids) == 16
    assert len(done.ids) == 10


def test_a_text_that_fits_stays_and_one_without_end_gets_the_most() -> None:
    [row] = rows_of(Ending(2), gen_length=8, max_gen_length=60, eos_check_tokens=4)
    assert (len(row.blocks[0]), row.looks, len(row.ids)) == (8, 1, 5 + 8 + 2)
    [row] = rows_of(Ending(90), gen_length=8, max_gen_length=21, eos_check_tokens=4)
    assert (len(row.blocks[0]), row.looks, len(row.ids)) == (21, 2, 5 + 21)


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_decoder_takes_it_and_rows_do_not_depend_on_each_other(decoder: str) -> None:
    several = prompts(4)
    options: dict[str, Any] = {
        "decoder": decoder,
        "gen_length": 4,
        "max_gen_length": 12,
        "eos_check_tokens": 2,
        "expansion_factor": 3,
        "eos_confidence_threshold": 0.1,
    }
    together = generate(ToyModel(32), several, **options)
    for i, prompt in enumerate(several):
        [alone] = generate(ToyModel(32), [prompt], first_row=i, **options)
        assert (alone.all_ids, alone.passes) == (together[i].all_ids, together[i].passes)
    assert len({len(d.all_ids) for d in together}) > 1
    assert all(MASK not in d.all_ids for d in together)


@pytest.mark.parametrize(
    ("prompt", "options", "message"),
    [
        ([1, 2], {"gen_length": 9, "max_gen_length": 8}, "less than gen_length 9"),
        ([1, -1], {"gen_length": 4, "max_gen_length": 8}, "prompt 0 has gaps"),
        ([1, 2], {"gen_length": 4, "max_gen_length": 95}, r"max_gen_length 95 = 97, but 'toy'"),
    ],
)
def test_what_cannot_be_is_explained(prompt, options, message) -> None:
    with pytest.raises(InputError, match=message):
        generate(ToyModel(), [prompt], decoder="mask", **options)


def test_a_block_causal_model_needs_none() -> None:
    model = ToyModel()
    model.block_size = 4
    with pytest.raises(InputError, match="decodes block after block until its text ends"):
        generate(model, [[1, 2]], decoder="mask", gen_length=4, max_gen_length=8)

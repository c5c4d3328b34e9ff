"""What alignment reads: batches of own answers, corruption of short ones, held-out answers."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from builders import CONFIGS
from own_answers import EOS, MASK, own_answer, own_answers

from xpredflow import InputError
from xpredflow.models import build
from xpredflow.training.common.answer_batches import (
    batch_at,
    check_answers,
    hold_out,
    length,
    text_batch,
)
from xpredflow.training.common.masking import all_clean, draw_masks
from xpredflow.types import SpecialTokens

SPECIAL = SpecialTokens(mask=MASK, eos=EOS)


def test_every_epoch_reads_every_answer_once() -> None:
    answers = own_answers(24)
    # 16 batches of 4 are sorted together, so that only 48 steps are a round number of epochs: 8
    read = Counter(a.number for step in range(48) for a in batch_at(answers, step, 4, seed=1))
    assert read == {number: 8 for number in range(24)}
    numbers = [a.number for a in batch_at(answers, 5, 4, seed=1)]
    assert numbers == [a.number for a in batch_at(answers, 5, 4, seed=1)]
    assert numbers != [a.number for a in batch_at(answers, 5, 4, seed=2)]


def test_a_batch_holds_neighbours_in_length() -> None:
    answers = own_answers(64)
    spreads = [
        max(lengths) - min(lengths)
        for step in range(16)
        for lengths in [[length(a) for a in batch_at(answers, step, 4, seed=0)]]
    ]
    assert max(spreads) <= 1


def test_held_out_answers_are_not_trained_on() -> None:
    kept, held = hold_out(own_answers(100), 8, seed=0)
    assert len(held) == 8
    assert sorted(a.number for a in kept + held) == list(range(100))
    assert len(hold_out(own_answers(10), 64, seed=0)[1]) == 2  # a fifth of a small file
    with pytest.raises(InputError, match="too few"):
        hold_out(own_answers(1), 8, seed=0)


def test_a_bidirectional_model_reads_nothing_behind_a_response() -> None:
    short, long = own_answer(0, 8), own_answer(1, 20)
    batch = text_batch([short, long], SPECIAL, None)
    noise = draw_masks(batch, None, EOS, torch.Generator().manual_seed(0))
    for i, answer in enumerate((short, long)):
        end = length(answer)
        assert noise.ids[i, :end].tolist() == answer.prompt_ids + answer.response_ids
        assert noise.positions[i, :end].tolist() == list(range(end))
        assert (noise.positions[i, end:] == -1).all()
        start = len(answer.prompt_ids)
        assert noise.candidates[i].nonzero().flatten().tolist() == list(range(start, end))
        assert not (noise.masked[i] & ~noise.candidates[i]).any()


def test_a_block_that_was_cut_off_ends_in_masks_as_in_decoding() -> None:
    """Six prompt tokens and seven more: block 1 of size 8 has five tokens, then undecoded masks."""
    cut = replace(own_answer(0), prompt_ids=[1] * 6, response_ids=[7] * 7)  # no EOS
    ended = replace(own_answer(1), prompt_ids=[1] * 6, response_ids=[7] * 4 + [EOS] * 6)
    batch = text_batch([cut] * 40 + [ended] * 40, SPECIAL, 8)
    noise = draw_masks(batch, 8, EOS, torch.Generator().manual_seed(0))
    blocks = set()
    for i in range(80):
        places = noise.candidates[i].nonzero().flatten().tolist()
        block = places[0] // 8
        blocks.add((i < 40, block))
        last = 13 if i < 40 else 16
        assert places == list(range(max(6, 8 * block), min(8 * block + 8, last)))
        assert noise.positions[i].max() == 8 * block + 7
        if i < 40 and block == 1:
            assert noise.ids[i, 13:16].tolist() == [MASK] * 3
    assert blocks == {(True, 0), (True, 1), (False, 0), (False, 1)}


def test_a_clean_text_is_read_in_whole_blocks() -> None:
    batch = text_batch([own_answer(0, 8), own_answer(1, 20)], SPECIAL, 8)
    clean = all_clean(batch, 8)
    assert not clean.masked.any()
    assert torch.equal(clean.candidates, batch.response)
    for i, answer in enumerate((own_answer(0, 8), own_answer(1, 20))):
        assert clean.positions[i].max() == -(-length(answer) // 8) * 8 - 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"response_ids": [288]}, "answer 3 holds token 288, but 'LLaDA' has tokens 0 to 287"),
        ({"prompt_ids": [-1]}, "answer 3 holds token -1"),
        ({"response_ids": [7, MASK]}, "answer 3 holds token 258, which is the mask of 'LLaDA'"),
        ({"response_ids": []}, "answer 3 has an empty prompt or response"),
        ({"response_ids": [7] * 128}, "but 'LLaDA' takes at most 128"),
    ],
)
def test_answers_of_another_model_are_refused(changes: dict, message: str) -> None:
    answers = [own_answer(1), replace(own_answer(3), **changes)]
    with pytest.raises(InputError, match=message):
        check_answers(answers, build(CONFIGS["llada"]))

"""What training hides: masks of every share, rows cut off, tails alone, one block at a time."""

import torch

from xpredflow.training.common.masking import REACH, TextBatch, draw_masks


def test_corruption_is_stratified_and_bounded() -> None:
    response = torch.ones(64, 50, dtype=torch.bool)
    response[:, :10] = False
    batch = TextBatch(torch.zeros(64, 50, dtype=torch.long), response)
    noise = draw_masks(batch, None, 1, torch.Generator().manual_seed(0))
    assert not noise.masked[:, :10].any()
    assert noise.masked.any(-1).all()
    assert noise.weight.max() <= 10
    share = noise.masked.sum(-1) / 40
    # one row in each of 64 strata of σ: the sorted shares follow the diagonal
    expected = (torch.arange(64) + 0.5) / 64
    assert (share.sort().values - expected).abs().max() < 0.2
    assert abs(share.mean() - 0.5) < 0.03


def test_rows_that_are_cut_off_hide_all_that_follows_and_ask_for_what_is_near() -> None:
    eos, text, length = 1, 30, 60
    ids = torch.arange(10, 10 + length).repeat(400, 1)
    ids[:, text:] = eos
    response = torch.ones(400, length, dtype=torch.bool)
    response[:, :10] = False
    draw = torch.Generator().manual_seed(0)
    noise = draw_masks(TextBatch(ids, response), None, eos, draw, cut_share=1.0)
    first = noise.masked.int().argmax(-1)
    columns = torch.arange(length)
    assert torch.equal(noise.masked, columns >= first.unsqueeze(-1))
    assert torch.equal(noise.asked, noise.masked & (columns < first.unsqueeze(-1) + REACH))
    assert set(first.tolist()) == set(range(10, text + 1))  # up to the first EOS, each possible
    # all its counted positions together weigh as much as a response that is wholly masked
    assert torch.allclose(noise.weight * noise.asked.sum(-1), torch.tensor(50.0))


def test_rows_of_which_only_the_tail_is_shown_ask_for_what_stands_before_it() -> None:
    response = torch.ones(600, 60, dtype=torch.bool)
    response[:, :10] = False
    batch = TextBatch(torch.arange(60).repeat(600, 1), response)
    draw = torch.Generator().manual_seed(0)
    noise = draw_masks(batch, None, 99, draw, cut_share=0.5, tail_share=1.0)
    columns = torch.arange(60)
    last = 9 + noise.masked.sum(-1, keepdim=True)
    assert torch.equal(noise.masked, (columns >= 10) & (columns <= last))
    assert torch.equal(noise.asked, noise.masked & (columns > last - REACH))
    assert set(last.flatten().tolist()) == set(range(10, 60))


def test_some_rows_are_cut_off_and_the_others_stay_as_they_were() -> None:
    response = torch.ones(200, 40, dtype=torch.bool)
    batch = TextBatch(torch.arange(40).repeat(200, 1), response)
    plain = draw_masks(batch, None, 99, torch.Generator().manual_seed(0))
    mixed = draw_masks(batch, None, 99, torch.Generator().manual_seed(0), cut_share=0.5)
    same = (plain.masked == mixed.masked).all(-1)
    assert 60 < same.sum() < 140
    assert torch.equal(plain.asked, plain.masked)
    assert torch.equal(plain.weight[same], mixed.weight[same])


def test_a_block_causal_model_learns_one_block_behind_clean_ones() -> None:
    size, eos = 8, 1
    ids = torch.full((200, 40), eos)
    response = torch.zeros(200, 40, dtype=torch.bool)
    for i in range(200):
        ids[i, :30] = torch.arange(10, 40)  # the first EOS stands in block 3
        response[i, 5:] = True  # the prompt ends inside block 0
    noise = draw_masks(TextBatch(ids, response), size, eos, torch.Generator().manual_seed(0))
    blocks = set()
    for i in range(200):
        places = noise.candidates[i].nonzero().flatten()
        [block] = set((places // size).tolist())
        blocks.add(block)
        assert places.min() == max(5, block * size)
        assert noise.positions[i].max() == (block + 1) * size - 1  # nothing is read beyond it
        assert not (noise.masked[i] & ~noise.candidates[i]).any()
    assert blocks == {0, 1, 2, 3}

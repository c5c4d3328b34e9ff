"""Logits that are made of a few positions at a time say what all of them at once say."""

import pytest
import torch
from builders import write_checkpoint

from xpredflow import generate, load
from xpredflow.decoders import make_decoder
from xpredflow.decoders.threshold import Threshold
from xpredflow.engine import batch, pieces
from xpredflow.engine.distribution import Distribution, Head
from xpredflow.engine.pieces import needs_summaries_only

PROMPTS = [[65, 66, 67], [68, 69, 70, 71, 72], [73]]
OPTIONS = {"chat": False, "gen_length": 12, "budget": 6, "max_batch": 2}


@pytest.mark.parametrize("at_once", [1, 5, 7, 100])
def test_a_distribution_of_hidden_states(at_once: int) -> None:
    draw = torch.Generator().manual_seed(0)
    hidden = torch.randn(3, 5, 8, generator=draw)
    matrix = torch.randn(8, 2000, generator=draw)
    head = Head(lambda some: some @ matrix, at_once)
    whole, parts = (
        Distribution(hidden @ matrix, (3,)),
        Distribution(hidden, (3,), head=head),
    )
    tokens = torch.arange(15).view(3, 5)
    for one, other in (
        *zip(whole.summary(), parts.summary(), strict=True),
        *zip(whole.odds(tokens), parts.odds(tokens), strict=True),
        (whole.at(tokens), parts.at(tokens)),
        (whole.entropy(), parts.entropy()),
        (whole.row(1).entropy(), parts.row(1).entropy()),
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("family", ["llada", "llada2"])
@pytest.mark.parametrize("decoder", ["flow", "mask", "threshold:0.5", "wino", "eb"])
def test_the_same_tokens(tmp_path, monkeypatch, family: str, decoder: str) -> None:
    write_checkpoint(tmp_path / family, family)
    model = load(tmp_path / family)
    expected = [done.all_ids for done in generate(model, PROMPTS, decoder=decoder, **OPTIONS)]
    heads = []

    def counted(*args):
        heads.append(pieces.head_for(*args))
        return heads[-1]

    monkeypatch.setitem(pieces.PIECE_BYTES, "cpu", 4 * len(model.embedding) * 5)
    monkeypatch.setattr(batch, "head_for", counted)
    found = [done.all_ids for done in generate(model, PROMPTS, decoder=decoder, **OPTIONS)]
    assert found == expected
    if decoder == "eb":
        assert not any(heads)
    else:
        assert any(head is not None and head.at_once == 5 for head in heads)


@pytest.mark.parametrize(
    ("decoder", "enough"),
    [
        *(("flow", True), ("flow:learned:tiny", True), ("mask", True), ("wino", True)),
        *(("mask:entropy", False), ("flow+top_k=5", False), ("flow+top_k=none", False)),
        *(("threshold:0.9+temperature=1", False), ("eb", False), ("lopa", False)),
        *(("klass", False), ("soft", False)),
    ],
)
def test_who_needs_more_than_summaries(decoder: str, enough: bool) -> None:
    assert needs_summaries_only(make_decoder(decoder)) == enough


def test_a_subclass_says_it_again() -> None:
    class Unsaid(Threshold):
        pass

    class Said(Threshold):
        summaries_only = True  # type: ignore[assignment]

    assert not needs_summaries_only(Unsaid())
    assert needs_summaries_only(Said())

"""Text while it is decoded: what is settled never changes, and in the end it is the answer."""

import asyncio

import pytest

from xpredflow import generate, load
from xpredflow.engine.text import astream, stream

PROMPTS = [
    "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters.",
    "Write get_box(xs) with lists. For each number: keep if even, add 3. Return the sum.",
]


@pytest.fixture(scope="module")
def model():
    return load("tiny-aligned")


@pytest.mark.parametrize(
    ("decoder", "block_length"),
    [("threshold:0.9", None), ("mask", 16), ("flow", 16), ("wino", None), ("flow", None)],
)
def test_settled_text_only_grows_and_becomes_the_answer(model, decoder, block_length) -> None:
    options = {"decoder": decoder, "block_length": block_length}
    expected = [done.text for done in generate(model, PROMPTS, **options)]
    settled = ["", ""]
    drafts = 0
    for partial in stream(model, PROMPTS, **options):
        assert partial.settled.startswith(settled[partial.row])
        assert expected[partial.row].startswith(partial.settled)
        settled[partial.row] = partial.settled
        drafts += bool(partial.draft)
        if partial.done is not None:
            assert partial.draft == ""
            assert partial.done.passes == partial.passes
    assert settled == expected
    assert drafts


def test_a_decoder_that_never_takes_back_settles_before_the_end(model) -> None:
    partials = list(stream(model, PROMPTS[0], decoder="mask"))
    assert any(p.settled and p.done is None for p in partials)


def test_an_infilled_text_is_a_draft_until_it_is_done(model) -> None:
    partials = list(stream(model, "x=25\nx=25-7=[[mask:2]]\nx=18+4=[[mask:2]]", decoder="mask"))
    assert all(p.settled == "" and p.draft.startswith("x=25") for p in partials[:-1])
    assert partials[-1].settled == "x=25\nx=25-7=18\nx=18+4=22"


def test_the_same_text_comes_asynchronously(model) -> None:
    async def collect() -> list:
        return [partial async for partial in astream(model, PROMPTS, decoder="threshold:0.9")]

    assert asyncio.run(collect()) == list(stream(model, PROMPTS, decoder="threshold:0.9"))

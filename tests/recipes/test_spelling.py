"""A tokenizer that spells words alike: after a space, a bracket, or at the start of a line."""

from pathlib import Path

import pytest
from spelling import spell_alike
from tokenizers import Tokenizer

from xpredflow.models.embedded import assets

TEXTS = ["Tom has 23 pens. How many pens now? Use letters.", "for x in nums: return x"] * 2
UNKNOWN = ("terms", "Bronwyn", "rinse", "flonsks", "lamb")


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Tokenizer]:
    path = tmp_path_factory.mktemp("spelt")
    spell_alike(assets("tiny"), TEXTS, 2, path)
    files = (assets("tiny"), path)
    old, new = (Tokenizer.from_file(str(Path(file) / "tokenizer.json")) for file in files)
    return old, new


@pytest.mark.parametrize("word", UNKNOWN)
def test_an_unknown_word_is_cut_up_in_one_way(
    tokenizers: tuple[Tokenizer, Tokenizer], word: str
) -> None:
    _, new = tokenizers
    pieces = new.encode(word).tokens
    for before, after in (("(", ")"), ("\n", ":"), (" ", ".")):
        assert new.encode(before + word + after).tokens[1:-1] == pieces


def test_the_tokenizer_it_comes_from_does_not(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    old, _ = tokenizers
    assert any(old.encode(" " + w).tokens[1:] != old.encode("(" + w).tokens[1:] for w in UNKNOWN)


def test_known_words_keep_their_token_and_every_text_survives(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    old, new = tokenizers
    assert old.get_vocab().items() <= new.get_vocab().items()
    for word in (" has", " pens", " How", " in", " nums"):
        assert new.encode(word).ids == old.encode(word).ids
        assert len(new.encode(word).ids) == 1
    assert new.encode("def f(nums):\n    return 0").tokens[-3:] == ["Ġreturn", "Ġ", "0"]
    for text in (*TEXTS, "Žofie über_naïve(π)\n\n        x"):
        assert new.decode(new.encode(text).ids) == text

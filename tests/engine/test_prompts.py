"""Prompts as ids: gaps and token ids are checked before anything is made of them."""

import pytest
from byte_tokenizer import byte_tokenizer
from toy import ToyModel

from xpredflow import InputError
from xpredflow.engine.prompts import encode


class Reading(ToyModel):
    """A toy with a tokenizer whose ids may lie beyond the toy's embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = byte_tokenizer()
        self.tokenizer.chat_template = None


class Small(Reading):
    """Its tokenizer gives small ids only."""

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = lambda text, **_: {"input_ids": [ord(c) % 8 for c in text]}


def ids(model: ToyModel, prompt: object) -> list[int]:
    return encode(model, prompt, chat=False, system=None).ids  # type: ignore[arg-type]


def test_gaps_are_open_positions() -> None:
    assert ids(Small(), "a[[mask:3]]b[[mask:002]]") == [1, -1, -1, -1, 2, -1, -1]


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        ("[[mask:0]]", "no positions"),
        ("[[mask:000]]", "no positions"),
        ("[[mask:97]]", "96 positions"),
        ("[[mask:50]] and [[mask:47]]", r"\[\[mask:47\]\]' is too long"),
        ("[[mask:999999999999]]", "too long"),
        (f"[[mask:{'9' * 10_000}]]", "too long"),
        ("[[mask:96]]" * 100_000, "too long"),
    ],
)
def test_a_gap_that_does_not_fit_is_refused_before_it_is_made(gaps: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        ids(Small(), "a" + gaps)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("prompt", ["ab\ud800c", "ab\udcff [[mask:1]]"])
def test_half_a_character_is_refused_in_words(prompt: str) -> None:
    with pytest.raises(InputError, match=r"character 3 of a prompt is '.ud.*half a surrogate"):
        ids(Reading(), prompt)


def test_ids_of_another_models_tokenizer_are_refused() -> None:
    model = Reading()
    rows = len(model.embedding)
    assert ids(model, chr(rows - 1)) == [rows - 1]
    with pytest.raises(InputError, match=f"token id {rows}, but .* {rows} rows"):
        ids(model, "a" if rows == ord("a") else chr(rows))
    with pytest.raises(InputError, match=f"token id {rows}"):
        ids(model, [0, rows])

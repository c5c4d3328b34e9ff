"""Tokens and texts as a terminal may show them: whole characters, nothing that steers it."""

from collections.abc import Sequence
from typing import Any

OPEN, BREAK, END, BROKEN = "░", "↵", "∎", "\N{REPLACEMENT CHARACTER}"
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_PICTURES |= {0x7F: "\N{SYMBOL FOR DELETE}"} | dict.fromkeys(range(0x80, 0xA0), BROKEN)
# marks that reorder a line would let a text look like another one
_PICTURES |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], BROKEN)


def visible(text: str) -> str:
    """Control characters as pictures: a model's output must not steer the terminal."""
    return text.translate(_PICTURES)


def prompt_text(prompt: Any) -> str:
    """A prompt as one string to show: of a conversation, what was said last."""
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list) and prompt and isinstance(prompt[-1], dict):
        return str(prompt[-1].get("content", ""))
    return str(prompt)


class TokenText:
    """What each token of a row looks like: characters split over tokens stay whole.

    `known` are texts of runs of tokens, by their ids; what is not among them is decoded by the
    tokenizer, or shown as a number where there is none.
    """

    def __init__(self, tokenizer: Any, known: dict[tuple[int, ...], str] | None = None) -> None:
        self.tokenizer = tokenizer
        self.known: dict[tuple[int, ...], str] = {} if known is None else known

    def pieces(self, tokens: Sequence[int | None]) -> list[str]:
        """One string per token, the glyph of an open position for None.

        A character made of several byte tokens stands at its first, its others are empty.
        """
        pieces: list[str] = []
        while len(pieces) < len(tokens):
            pieces += self._character(tokens[len(pieces) : len(pieces) + 4])
        return pieces

    def _character(self, tokens: Sequence[int | None]) -> list[str]:
        if tokens[0] is None:
            return [OPEN]
        run: tuple[int, ...] = ()
        for token in tokens:  # UTF-8 has at most four bytes per character
            if token is None:
                break
            run = (*run, token)
            text = self._decode(run)
            if BROKEN not in text:
                return [visible(text)] + [""] * (len(run) - 1)
        return [BROKEN]

    def _decode(self, run: tuple[int, ...]) -> str:
        if run not in self.known:
            if self.tokenizer is not None:
                self.known[run] = self.tokenizer.decode(list(run))
            else:  # a longer run whose text nobody recorded makes no character
                self.known[run] = f"{run[0]} " if len(run) == 1 else BROKEN
        return self.known[run]

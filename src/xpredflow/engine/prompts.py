"""Text -> token ids with open positions: plain text, chat messages, gaps to fill, or raw ids."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xpredflow.engine.chat import chat_text, has_chat_template
from xpredflow.errors import InputError
from xpredflow.types import Model

Prompt = str | Sequence[dict[str, str]] | Sequence[int]
# One prompt, several, or several by the number that their randomness depends on.
Prompts = Prompt | Sequence[Prompt] | Mapping[int, Prompt]
_EXPECTED = (
    "expected a text, a list of messages ({'role': ..., 'content': ...}), a list of token ids, or a"
    " list of such prompts"
)
GAP = re.compile(r"\[\[mask:(\d+)\]\]")


@dataclass(frozen=True)
class Encoded:
    """A prompt as ids; -1 marks an open position. Without gaps the response follows the prompt."""

    ids: list[int]

    @property
    def has_gaps(self) -> bool:
        """True for infilling: everything but the gaps is frozen and nothing is appended."""
        return -1 in self.ids


def numbered(prompts: Any, first: int = 0) -> dict[int, Prompt]:
    """Every prompt by its number, whether one was given or several."""
    if isinstance(prompts, Mapping):
        return dict(prompts)
    if isinstance(prompts, str) or _is_one_prompt(prompts):
        prompts = [prompts]
    if not isinstance(prompts, Sequence):
        raise InputError(f"prompts are {prompts!r:.80}: {_EXPECTED}")
    return dict(enumerate(prompts, start=first))


def _is_one_prompt(value: Any) -> bool:
    """A conversation, or token ids: lists that are a prompt themselves."""
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], dict | int)


def encode(model: Model, prompt: Prompt, *, chat: bool | None, system: str | None) -> Encoded:
    """Ids of one prompt. `chat` None applies the chat template where there is one to apply."""
    encoded = _encode(model, prompt, chat, system)
    largest = max(encoded.ids, default=-1)
    if largest >= len(model.embedding):
        raise InputError(
            f"the tokenizer of {model.name!r} gives the token id {largest}, but the model's"
            f" embedding has {len(model.embedding)} rows: it belongs to another model"
        )
    return encoded


def _encode(model: Model, prompt: Prompt, chat: bool | None, system: str | None) -> Encoded:
    if isinstance(prompt, str):
        _check_characters(prompt)
        if GAP.search(prompt) or _holds_mask(model, prompt):
            return _encode_gaps(model, prompt, chat, system)
        if chat is False or (chat is None and system is None and not has_chat_template(model)):
            return Encoded(_plain_prompt(model, prompt))
        return Encoded(_chat(model, [{"role": "user", "content": prompt}], system))
    if not isinstance(prompt, Sequence):
        raise InputError(f"a prompt is {prompt!r:.80}: {_EXPECTED}")
    if prompt and isinstance(prompt[0], dict):
        return Encoded(_chat(model, _messages(prompt), system))
    return Encoded(_raw_ids(model, prompt))  # type: ignore[arg-type]


def _holds_mask(model: Model, prompt: str) -> bool:
    """Whether a masked language model's own mask token stands in the text."""
    return hasattr(model, "mask_text") and model.mask_text in prompt  # type: ignore[attr-defined]


def _encode_gaps(model: Model, prompt: str, chat: bool | None, system: str | None) -> Encoded:
    if chat or system is not None:
        raise InputError(
            "a prompt with [[mask:n]] gaps is filled in as it stands: leave out chat and system"
        )
    _check_gaps(model, prompt)
    if hasattr(model, "mask_text"):  # its tokenizer knows what to do around a mask
        text = GAP.sub(lambda gap: model.mask_text * int(gap.group(1)), prompt)  # type: ignore[attr-defined]
        return Encoded(model.encode_text(text, whole=True))  # type: ignore[attr-defined]
    ids: list[int] = []
    end = 0
    for gap in GAP.finditer(prompt):
        ids += plain_ids(model, prompt[end : gap.start()]) + [-1] * int(gap.group(1))
        end = gap.end()
    return Encoded(ids + plain_ids(model, prompt[end:]))


def _check_gaps(model: Model, prompt: str) -> None:
    """Every gap has positions, and all of them fit: what is too long is never made."""
    room = model.max_length
    for gap in GAP.finditer(prompt):
        digits = gap.group(1).lstrip("0")
        if not digits:
            raise InputError(f"gap {gap.group(0)!r} has no positions: write [[mask:n]] with n ≥ 1")
        # a number of very many digits is slow to read, and too large anyway
        room -= int(digits) if len(digits) < 10 else model.max_length + 1
        if room < 0:
            raise InputError(
                f"gap {gap.group(0)!r:.40} is too long: {model.name!r} has {model.max_length}"
                " positions for the text and all gaps together; write a smaller number"
            )


def _plain_prompt(model: Model, text: str) -> list[int]:
    """The text as it stands, with what a masked language model's tokenizer puts in front of it."""
    if hasattr(model, "encode_text"):
        return model.encode_text(text, whole=False)  # type: ignore[attr-defined]
    return plain_ids(model, text)


def plain_ids(model: Model, text: str) -> list[int]:
    """The tokens of a text as it stands, without any that begin or end one."""
    _check_characters(text)
    return _tokenizer(model)(text, add_special_tokens=False)["input_ids"] if text else []


def _check_characters(text: str) -> None:
    """Half a surrogate pair is no character, and no tokenizer takes it; JSON can hold one."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"character {error.start + 1} of a prompt is {text[error.start]!a}, half a"
            " surrogate pair, which no tokenizer reads: remove it, or give the text in UTF-8"
        ) from None


def _chat(model: Model, messages: list[dict[str, str]], system: str | None) -> list[int]:
    _tokenizer(model)
    if system is not None:
        messages = [{"role": "system", "content": system}, *messages]
    return plain_ids(model, chat_text(model, messages))


def _messages(prompt: Sequence[Any]) -> list[dict[str, str]]:
    for message in prompt:
        text = [message.get(key) for key in ("role", "content")] if hasattr(message, "get") else []
        if len(text) != 2 or not all(isinstance(part, str) for part in text):
            raise InputError(
                f"a message is {message!r:.80}: expected a text under 'role' and under 'content'"
            )
    return list(prompt)


def _tokenizer(model: Model) -> Any:
    if model.tokenizer is None:
        raise InputError(
            f"model {model.name!r} has no tokenizer: put a tokenizer.json into its directory or"
            " pass prompts as lists of token ids"
        )
    return model.tokenizer


def _raw_ids(model: Model, prompt: Sequence[int]) -> list[int]:
    size = len(model.embedding)
    for token in prompt:
        if type(token) is not int or not -1 <= token < size:
            raise InputError(
                f"token id {token!r} in a prompt: expected a whole number from 0 to {size - 1},"
                " or -1 for a position to fill"
            )
    return list(prompt)


def decode(model: Model, ids: list[int]) -> str:
    """Text without special tokens; empty where the model has no tokenizer."""
    if model.tokenizer is None:
        return ""
    return model.tokenizer.decode(ids, skip_special_tokens=True)

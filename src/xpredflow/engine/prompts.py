"""Text -> token ids with open positions: plain text, chat messages, gaps to fill, or raw ids."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    if isinstance(prompt, str):
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


def has_chat_template(model: Model) -> bool:
    """Whether the tokenizer knows how a conversation is written."""
    return bool(getattr(model.tokenizer, "chat_template", None))


def _holds_mask(model: Model, prompt: str) -> bool:
    """Whether a masked language model's own mask token stands in the text."""
    return hasattr(model, "mask_text") and model.mask_text in prompt  # type: ignore[attr-defined]


def _encode_gaps(model: Model, prompt: str, chat: bool | None, system: str | None) -> Encoded:
    if chat or system is not None:
        raise InputError(
            "a prompt with [[mask:n]] gaps is filled in as it stands: leave out chat and system"
        )
    if hasattr(model, "mask_text"):  # its tokenizer knows what to do around a mask
        text = GAP.sub(lambda gap: model.mask_text * _length(gap), prompt)  # type: ignore[attr-defined]
        return Encoded(model.encode_text(text, whole=True))  # type: ignore[attr-defined]
    ids: list[int] = []
    end = 0
    for gap in GAP.finditer(prompt):
        ids += plain_ids(model, prompt[end : gap.start()]) + [-1] * _length(gap)
        end = gap.end()
    return Encoded(ids + plain_ids(model, prompt[end:]))


def _length(gap: re.Match[str]) -> int:
    length = int(gap.group(1))
    if length == 0:
        raise InputError(f"gap {gap.group(0)!r} has no positions: write [[mask:n]] with n ≥ 1")
    return length


def _plain_prompt(model: Model, text: str) -> list[int]:
    """The text as it stands, with what a masked language model's tokenizer puts in front of it."""
    if hasattr(model, "encode_text"):
        return model.encode_text(text, whole=False)  # type: ignore[attr-defined]
    return plain_ids(model, text)


def plain_ids(model: Model, text: str) -> list[int]:
    """The tokens of a text as it stands, without any that begin or end one."""
    return _tokenizer(model)(text, add_special_tokens=False)["input_ids"] if text else []


def _chat(model: Model, messages: list[dict[str, str]], system: str | None) -> list[int]:
    tokenizer = _tokenizer(model)
    if not has_chat_template(model):
        raise InputError(
            f"the tokenizer of {model.name!r} has no chat template: pass chat=False (--no-chat) to"
            " send the prompt as plain text, or add chat_template to its tokenizer_config.json"
        )
    if system is not None:
        messages = [{"role": "system", "content": system}, *messages]
    template: dict[str, Any] = dict(getattr(model, "chat_options", {}))
    text = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=False, **template
    )
    return plain_ids(model, text)


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

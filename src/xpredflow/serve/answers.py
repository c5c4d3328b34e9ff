"""Results -> the JSON of a response, as each of the two endpoints writes it."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol
from uuid import uuid4

from xpredflow.serve.following import Result
from xpredflow.serve.jobs import Candidate, Committed
from xpredflow.serve.replies import (
    AssistantMessage,
    ChatChoice,
    ChatCompletion,
    ChatLogprobs,
    Completion,
    CompletionLogprobs,
    Slot,
    TextChoice,
    TokenLogprob,
    Usage,
)


class Style(Protocol):
    """How an endpoint writes its answers."""

    id: str
    created: int
    model: str

    def whole(self, results: list[Result], usage: Usage) -> Any:
        """The response without stream."""
        ...

    def opening(self, index: int) -> dict[str, Any] | None:
        """The first chunk of a row, if there is one."""
        ...

    def delta(self, index: int, text: str) -> dict[str, Any]:
        """A chunk with more text."""
        ...

    def closing(self, index: int, result: Result) -> dict[str, Any]:
        """A row's last chunk."""
        ...

    def chunk(self, choices: list[dict[str, Any]], **beside: Any) -> dict[str, Any]:
        """A chunk around choices; without any it carries what stands beside them."""
        ...


def usage_of(prompt_tokens: Sequence[int], n: int, results: Sequence[Result]) -> Usage:
    """A prompt is counted once however many answers it has."""
    prompt, answer = sum(prompt_tokens[::n]), sum(result.tokens for result in results)
    passes = sum(result.passes for result in results)
    return Usage(
        prompt_tokens=prompt, completion_tokens=answer, total_tokens=prompt + answer, passes=passes
    )


class _Written:
    """What both styles share."""

    prefix: str
    chunk_object: str

    def __init__(self, model: str) -> None:
        self.id, self.created, self.model = f"{self.prefix}-{uuid4().hex}", int(time.time()), model

    def chunk(self, choices: list[dict[str, Any]], **beside: Any) -> dict[str, Any]:
        head = {"id": self.id, "object": self.chunk_object, "created": self.created}
        return {**head, "model": self.model, "choices": choices, **beside}

    def _about(self, result: Result) -> dict[str, Any]:
        slots = None if result.slots is None else [Slot(**asdict(slot)) for slot in result.slots]
        return {
            "finish_reason": result.finish_reason,
            "passes": result.passes,
            "stop_reason": result.stop_reason,
            "slots": slots,
        }


class ChatStyle(_Written):
    """/v1/chat/completions"""

    prefix, chunk_object = "chatcmpl", "chat.completion.chunk"

    def whole(self, results: list[Result], usage: Usage) -> ChatCompletion:
        choices = [
            ChatChoice(
                index=i,
                message=AssistantMessage(content=result.text),
                logprobs=_chat_logprobs(result.committed),
                **self._about(result),
            )
            for i, result in enumerate(results)
        ]
        return ChatCompletion(
            id=self.id, created=self.created, model=self.model, choices=choices, usage=usage
        )

    def opening(self, index: int) -> dict[str, Any]:
        return self._choice(index, {"role": "assistant", "content": ""})

    def delta(self, index: int, text: str) -> dict[str, Any]:
        return self._choice(index, {"content": text})

    def closing(self, index: int, result: Result) -> dict[str, Any]:
        about = _plain(self._about(result))
        return self._choice(index, {}, _plain(_chat_logprobs(result.committed)), **about)

    def _choice(
        self, index: int, delta: dict[str, Any], logprobs: Any = None, **about: Any
    ) -> dict[str, Any]:
        about = {"finish_reason": None, **about}
        return self.chunk([{"index": index, "delta": delta, "logprobs": logprobs, **about}])


class TextStyle(_Written):
    """/v1/completions"""

    prefix, chunk_object = "cmpl", "text_completion"

    def whole(self, results: list[Result], usage: Usage) -> Completion:
        choices = [
            TextChoice(
                index=i,
                text=result.text,
                logprobs=_text_logprobs(result.committed),
                **self._about(result),
            )
            for i, result in enumerate(results)
        ]
        return Completion(
            id=self.id, created=self.created, model=self.model, choices=choices, usage=usage
        )

    def opening(self, index: int) -> None:
        return None

    def delta(self, index: int, text: str) -> dict[str, Any]:
        return self._choice(index, text)

    def closing(self, index: int, result: Result) -> dict[str, Any]:
        about = _plain(self._about(result))
        return self._choice(index, "", _plain(_text_logprobs(result.committed)), **about)

    def _choice(self, index: int, text: str, logprobs: Any = None, **about: Any) -> dict[str, Any]:
        about = {"finish_reason": None, **about}
        return self.chunk([{"index": index, "text": text, "logprobs": logprobs, **about}])


def _plain(value: Any) -> Any:
    """Models as the values that JSON holds."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _chat_logprobs(committed: list[Committed] | None) -> ChatLogprobs | None:
    if committed is None:
        return None
    content = [
        TokenLogprob(**_logprob(one.chosen), top_logprobs=[_logprob(other) for other in one.top])
        for one in committed
    ]
    return ChatLogprobs(content=content)


def _logprob(one: Candidate) -> dict[str, Any]:
    return {"token": one.token, "bytes": list(one.data), "logprob": one.logprob}


def _text_logprobs(committed: list[Committed] | None) -> CompletionLogprobs | None:
    if committed is None:
        return None
    offsets, length = [], 0
    for one in committed:
        offsets.append(length)
        length += len(one.chosen.token)
    return CompletionLogprobs(
        tokens=[one.chosen.token for one in committed],
        token_logprobs=[one.chosen.logprob for one in committed],
        top_logprobs=[{other.token: other.logprob for other in one.top} for one in committed],
        text_offset=offsets,
    )

"""Responses as the OpenAI API writes them; `passes` and `slots` are ours."""

from typing import Any, Literal

from pydantic import BaseModel

FinishReason = Literal["stop", "length"]


class Usage(BaseModel):
    """Tokens as usual, and the forward passes of all rows of the request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    passes: int


class TokenLogprob(BaseModel):
    """A token's log-probability in the pass that committed it."""

    token: str
    bytes: list[int]
    logprob: float
    top_logprobs: list[dict[str, Any]]


class ChatLogprobs(BaseModel):
    """The answer's tokens, one by one."""

    content: list[TokenLogprob]


class CompletionLogprobs(BaseModel):
    """The same as the older endpoint writes it."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class Slot(BaseModel):
    """A gap of the template, and for choices the probability of each."""

    name: str | None
    text: str
    probabilities: dict[str, float] | None = None


class AssistantMessage(BaseModel):
    """The answer of a chat."""

    role: Literal["assistant"] = "assistant"
    content: str


class Choice(BaseModel):
    """One answer. `passes` and `stop_reason` say how it was decoded."""

    index: int
    finish_reason: FinishReason
    passes: int
    stop_reason: str
    slots: list[Slot] | None = None


class ChatChoice(Choice):
    """An answer of a chat."""

    message: AssistantMessage
    logprobs: ChatLogprobs | None = None


class TextChoice(Choice):
    """A completion of a text."""

    text: str
    logprobs: CompletionLogprobs | None = None


class ChatCompletion(BaseModel):
    """POST /v1/chat/completions without stream."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class Completion(BaseModel):
    """POST /v1/completions without stream."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage


class ModelCard(BaseModel):
    """A model that is served, with the defaults its checkpoint states."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "xpredflow"
    max_length: int
    decoder: str


class ModelList(BaseModel):
    """GET /v1/models"""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class Health(BaseModel):
    """GET /healthz"""

    status: Literal["ok", "draining", "failed"]

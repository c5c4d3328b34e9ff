"""Requests and responses as the OpenAI API writes them, and what is ours beside it.

A request may also carry any option of the decoding loop and of its decoder by name (`decoder`,
`budget`, `block_length`, `policy`, ...): with the openai client, in `extra_body`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

Count = Annotated[StrictInt, Field(ge=1, le=2**31)]
TokenIds = Annotated[list[Annotated[StrictInt, Field(ge=0)]], Field(min_length=1)]
One = Annotated[float, Field(ge=1, le=1)]
Zero = Annotated[float, Field(ge=0, le=0)]
# Options of ours that are named in the API's description; a decoder's own may stand beside them.
Budget = StrictInt | StrictStr | None


class Part(BaseModel):
    """A part of a message; only text is understood."""

    type: Literal["text"]
    text: StrictStr


class Message(BaseModel):
    """One turn of a conversation."""

    role: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    content: StrictStr | list[Part]
    name: StrictStr | None = None

    @property
    def text(self) -> str:
        """The content, its parts joined."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content)


class TextFormat(BaseModel):
    """Free text, as without a format."""

    type: Literal["text"]


class Gap(BaseModel):
    """A gap of a template: `tokens` of free text, one of `choices`, or a value of a `kind`."""

    model_config = ConfigDict(extra="forbid")
    name: StrictStr | None = None
    tokens: Count | None = None
    choices: list[StrictStr] | None = None
    kind: Literal["text", "string", "number", "integer", "boolean"] | None = None


class TemplateFormat(BaseModel):
    """Fixed text with gaps: ["Answer: ", {"choices": ["yes", "no"]}, " because ", {"tokens": 8}]"""

    type: Literal["template"]
    template: Annotated[list[StrictStr | Gap], Field(min_length=1, max_length=256)]


class ChoiceFormat(BaseModel):
    """One of these texts, with the probability of each."""

    type: Literal["choice"]
    choices: Annotated[list[StrictStr], Field(min_length=1, max_length=256)]


class Schema(BaseModel):
    """A JSON schema by name, as the API writes it."""

    name: StrictStr = "answer"
    description: StrictStr | None = None
    json_schema: dict[str, Any] = Field(alias="schema")
    strict: StrictBool | None = None


class SchemaFormat(BaseModel):
    """A JSON object whose properties are strings, numbers, booleans, enums or such objects."""

    type: Literal["json_schema"]
    json_schema: Schema


Format = Annotated[
    TextFormat | TemplateFormat | ChoiceFormat | SchemaFormat, Field(discriminator="type")
]


class StreamOptions(BaseModel):
    """What a stream holds beside the text."""

    model_config = ConfigDict(extra="forbid")
    include_usage: StrictBool = False
    include_obfuscation: Literal[False] | None = None


class Common(BaseModel):
    """What both kinds of request share; what they do not name is an option of the decoder's."""

    model_config = ConfigDict(extra="allow")
    model: StrictStr | None = Field(None, description="the one that is served; see /v1/models")
    max_tokens: Count | None = Field(None, description="positions of the answer (gen_length)")
    n: Annotated[StrictInt, Field(ge=1, le=128)] = 1
    seed: Annotated[StrictInt, Field(ge=0, le=2**63 - 1)] | None = None
    stop: StrictStr | Annotated[list[StrictStr], Field(max_length=16)] | None = None
    stream: StrictBool | None = False
    stream_options: StreamOptions | None = None
    drafts: StrictBool = Field(False, description="send text that may still change as events")
    temperature: Annotated[float, Field(ge=0, le=2, strict=True)] | None = None
    decoder: StrictStr | None = Field(
        None, max_length=256, description="NAME[:VALUE][+OPTION=VALUE], such as threshold:0.9"
    )
    budget: Budget = Field(None, description="at most so many passes: 16, 1/4, 25% or full")
    block_length: Count | None = None
    response_format: Format | None = None
    user: StrictStr | None = None
    metadata: dict[str, Any] | None = None
    # understood in their neutral value only: a rule that is not applied must not be asked for
    top_p: One | None = None
    presence_penalty: Zero | None = None
    frequency_penalty: Zero | None = None
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts before which an answer ends."""
        found = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(text for text in found if text)

    @property
    def wants_usage(self) -> bool:
        """Whether the last event of a stream says what was used."""
        return self.stream_options is not None and self.stream_options.include_usage


class ChatRequest(Common):
    """POST /v1/chat/completions"""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Count | None = None
    logprobs: StrictBool | None = False
    top_logprobs: Annotated[StrictInt, Field(ge=0, le=4)] | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = None
    tool_choice: Literal["none"] | None = None
    store: Literal[False] | None = None


class CompletionRequest(Common):
    """POST /v1/completions; [[mask:8]] in a prompt is a gap of 8 tokens."""

    prompt: StrictStr | TokenIds | Annotated[list[StrictStr | TokenIds], Field(min_length=1)]
    suffix: StrictStr | None = Field(None, description="the text after the gap that is filled in")
    logprobs: Annotated[StrictInt, Field(ge=0, le=4)] | None = None
    echo: Literal[False] | None = None
    best_of: One | None = None


class ErrorInfo(BaseModel):
    """What was wrong, as the openai client reads it."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """Every error of the server."""

    error: ErrorInfo

"""Requests -> jobs: one per prompt and answer, with the options that the decoder takes."""

from dataclasses import dataclass
from typing import Any

from xpredflow.decoders import DECODERS, option_owner
from xpredflow.decoders.spec import parse_spec
from xpredflow.engine.request import ALIASES, DEFAULT_DECODER, Options
from xpredflow.errors import InputError, unknown_name
from xpredflow.policies.beta import embedded_policies
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.jobs import Job
from xpredflow.serve.protocol import ChatRequest, Common, CompletionRequest
from xpredflow.serve.templates import template_of
from xpredflow.settings import option_names

# Options that a request may not set: the server's own, or said in another way.
NOT_ASKED = {"max_batch", "trace", "first_row", "chat", "system"}
HANDED_ON = ("budget", "block_length", "seed")  # fields that the engine knows by the same name


class UnknownModel(InputError):
    """A model that is not the one served."""


@dataclass(frozen=True)
class Served:
    """What is served: the model by name, its length and the decoder of its checkpoint."""

    name: str
    max_length: int
    decoder: str | None = None


def chat_jobs(body: ChatRequest, served: Served, config: ServeConfig) -> list[Job]:
    """The answers that a chat asks for."""
    if body.top_logprobs is not None and not body.logprobs:
        raise InputError("top_logprobs is given without logprobs: set logprobs to true")
    top = (body.top_logprobs or 0) if body.logprobs else None
    messages = [{"role": message.role, "content": message.text} for message in body.messages]
    return _jobs([messages], body, served, config, body.max_completion_tokens, top, None)


def completion_jobs(body: CompletionRequest, served: Served, config: ServeConfig) -> list[Job]:
    """The completions of every prompt, those of one prompt in a row."""
    given: Any = body.prompt
    prompts = [given] if isinstance(given, str) or isinstance(given[0], int) else given
    suffix = body.suffix or None
    if suffix is not None and not all(isinstance(prompt, str) for prompt in prompts):
        raise InputError("suffix is given beside token ids: give the prompt as a text")
    if suffix is not None and body.response_format is not None:
        raise InputError("suffix and response_format both say what surrounds gaps: give one")
    return _jobs(prompts, body, served, config, None, body.logprobs, suffix)


def _jobs(
    prompts: list[Any],
    body: Common,
    served: Served,
    config: ServeConfig,
    length: int | None,
    logprobs: int | None,
    suffix: str | None,
) -> list[Job]:
    if body.model is not None and body.model != served.name:
        raise UnknownModel(f"model is {body.model!r}: this server has {served.name!r}")
    if len(prompts) * body.n > config.max_choices:
        raise InputError(
            f"{len(prompts)} prompts with n = {body.n} are {len(prompts) * body.n} answers: this"
            f" server takes at most {config.max_choices} in one request; send several"
        )
    template = template_of(body.response_format)
    if template is not None and body.stops:
        raise InputError("stop is given beside a response_format: its end is where it ends")
    options = _options(body, served, length)
    return [
        Job(
            prompt=prompt,
            decoder=body.decoder,
            options={**options, "first_row": row},
            suffix=suffix,
            template=template,
            partial=bool(body.stream) or bool(body.stops),
            drafts=bool(body.stream) and body.drafts,
            logprobs=logprobs,
        )
        for prompt in prompts
        for row in range(body.n)
    ]


def _options(body: Common, served: Served, length: int | None) -> dict[str, Any]:
    """What the engine is told, under its own names; a name that nobody knows is refused."""
    spec = parse_spec(body.decoder or served.decoder or DEFAULT_DECODER)
    DECODERS.entry(spec.name)
    own = set(option_names(option_owner(spec.name) or object))
    loop = {*option_names(Options), *ALIASES} - NOT_ASKED
    beside = dict(body.model_extra or {})
    fields = {*type(body).model_fields}
    for name in (*beside, *spec.options):
        if name not in loop | own:
            where = f" for decoder {spec.name!r}"
            raise unknown_name("option", name, fields | own | loop, where)
    given = {name: getattr(body, name) for name in HANDED_ON}
    given["gen_length"] = _one_length(body.max_tokens, length)
    options = {name: value for name, value in given.items() if value is not None}
    for name, value in beside.items():
        if name in options:
            raise InputError(f"{name} is given twice: as {options[name]!r} and as {value!r}")
        options[name] = value
    if body.temperature is not None:
        options |= _temperature(body.temperature, "temperature" in own, spec.name)
    main = DECODERS.entry(spec.name).about.get("main")
    value = {str(main): spec.value} if spec.value else {}
    _refuse_files({**spec.options, **options, **value})
    return options


def _one_length(first: int | None, second: int | None) -> int | None:
    if first is not None and second is not None and first != second:
        raise InputError(
            f"max_tokens is {first} and max_completion_tokens {second}: they are one, give it once"
        )
    return second if first is None else first


def _temperature(value: float, known: bool, decoder: str) -> dict[str, float]:
    if known:
        return {"temperature": value}
    if value == 0:  # what it does anyway
        return {}
    raise InputError(
        f"temperature is {value}: decoder {decoder!r} draws no tokens; leave temperature out, or"
        " choose a decoder that does, such as threshold:0.9"
    )


def _refuse_files(options: dict[str, Any]) -> None:
    """A request names policies that come with the package: it opens no files of the server's."""
    policy = options.get("policy")
    kind, _, name = str(policy or "").partition(":")
    if kind.strip() == "learned" and name not in embedded_policies():
        names = ", ".join(embedded_policies())
        raise InputError(f"policy is {policy!r}: a request may name an embedded one ({names})")

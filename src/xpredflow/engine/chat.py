"""A conversation -> the text that the model's chat template makes of it."""

from pathlib import Path
from typing import Any, Literal

from xpredflow.errors import InputError
from xpredflow.sandbox.templates import render_template
from xpredflow.types import Model

Messages = list[dict[str, str]]
Ends = Literal["answer", "message", "continued"]
_CONTINUED = "<the answer goes on here>"  # and a space, which shows whether the template trims


def has_chat_template(model: Model) -> bool:
    """Whether the tokenizer knows how a conversation is written."""
    return bool(getattr(model.tokenizer, "chat_template", None))


def chat_text(model: Model, messages: Messages, *, ends: Ends = "answer") -> str:
    """The conversation as text, up to where an answer begins.

    `ends` "message" leaves out the opening of an answer; "continued" also what closes the last
    message, which the model is to write on.
    """
    if not has_chat_template(model):
        raise InputError(
            f"the tokenizer of {model.name!r} has no chat template: pass chat=False (--no-chat) to"
            " send the prompt as plain text, or add chat_template to its tokenizer_config.json"
        )
    if not messages:
        raise InputError("a conversation has no messages: give at least one")
    if ends != "continued":
        return _rendered(model, messages, ends == "answer")
    *before, last = messages
    marked = {**last, "content": f"{last['content']}{_CONTINUED} "}
    begun, found, rest = _rendered(model, [*before, marked], False).rpartition(_CONTINUED)
    if not found:
        raise InputError(
            f"{_where(model.tokenizer)} leaves out the last message, which is to be continued:"
            " choose a task without a prefilled answer"
        )
    return begun if rest.startswith(" ") else begun.rstrip()


def _rendered(model: Model, messages: Messages, answer_follows: bool) -> str:
    tokenizer: Any = model.tokenizer
    options = dict(getattr(model, "chat_options", {}))
    if not hasattr(tokenizer, "special_tokens_map"):  # somebody's own class, which they trust
        return tokenizer.apply_chat_template(
            messages, add_generation_prompt=answer_follows, tokenize=False, **options
        )
    variables = {
        "messages": messages,
        "tools": None,
        "documents": None,
        "add_generation_prompt": answer_follows,
        **{name: _plain(value) for name, value in tokenizer.special_tokens_map.items()},
        **options,
    }
    return render_template(_template(tokenizer), variables, _where(tokenizer))


def _plain(value: Any) -> Any:
    return [str(part) for part in value] if isinstance(value, list | tuple) else str(value)


def _template(tokenizer: Any) -> str:
    """The template itself, or the one called default among several."""
    template = tokenizer.chat_template
    if isinstance(template, dict):
        if "default" not in template:
            raise InputError(
                f"{_where(tokenizer)} has the templates {', '.join(template)}, none of which is"
                " called default: rename one of them"
            )
        template = template["default"]
    if not isinstance(template, str):
        raise InputError(f"{_where(tokenizer)} is {template!r:.60}; expected a text")
    return template


def _where(tokenizer: Any) -> str:
    directory = Path(str(getattr(tokenizer, "name_or_path", "")))
    file = directory / "chat_template.jinja"
    if file.is_file():
        return f"the chat template {file}"
    return f"the chat_template in {directory / 'tokenizer_config.json'}"

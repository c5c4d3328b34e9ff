"""`response_format` -> a template: its own parts, one of several choices, or a JSON schema."""

from xpredflow.errors import InputError
from xpredflow.serve.protocol import ChoiceFormat, Format, Gap, SchemaFormat, TemplateFormat
from xpredflow.slots import template as slots

MAX_GAP_TOKENS = 4096


def template_of(format_: Format | None) -> slots.Template | None:
    """The template that a format asks for; None for free text."""
    if isinstance(format_, ChoiceFormat):
        return slots.make_template([slots.gap(choices=format_.choices)])
    if isinstance(format_, SchemaFormat):
        return slots.json_template(format_.json_schema.json_schema)
    if isinstance(format_, TemplateFormat):
        parts = [part if isinstance(part, str) else _gap(part) for part in format_.template]
        return slots.make_template(parts)
    return None


def _gap(part: Gap) -> slots.Gap:
    if part.tokens is not None and part.tokens > MAX_GAP_TOKENS:
        raise InputError(f"a gap has {part.tokens} tokens: expected at most {MAX_GAP_TOKENS}")
    if part.choices is not None and part.kind is not None:
        raise InputError(f"a gap has choices and is a {part.kind}: give one of the two")
    return slots.gap(part.kind or "text", part.tokens, part.choices, part.name)

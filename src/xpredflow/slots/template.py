"""Templates: fixed text with gaps, from parts or from a JSON schema."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from xpredflow.errors import InputError, unknown_name

Kind = Literal["text", "choice", "string", "number", "integer"]
LENGTHS: dict[str, int] = {"text": 16, "string": 16, "number": 8, "integer": 8}
MAX_DEPTH = 8
# What a schema may say of a property of each type; whatever else would silently not hold.
EVERYWHERE = {"type", "title", "description", "default", "enum", "const", "$ref", "$defs"}
KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "string": {"maxTokens"},
    "number": {"maxTokens"},
    "integer": {"maxTokens"},
    "boolean": set(),
}


@dataclass(frozen=True)
class Gap:
    """A gap: at most `tokens` positions of some kind of text, or exactly one of `choices`."""

    kind: Kind
    tokens: int = 0
    choices: tuple[str, ...] = ()
    name: str | None = None


@dataclass(frozen=True)
class Template:
    """Texts and gaps in their order; no two texts stand beside each other."""

    parts: tuple[str | Gap, ...]

    @property
    def gaps(self) -> list[Gap]:
        """The gaps alone."""
        return [part for part in self.parts if isinstance(part, Gap)]


def gap(
    kind: str = "text",
    tokens: int | None = None,
    choices: Sequence[str] | None = None,
    name: str | None = None,
) -> Gap:
    """A gap, checked: `choices` make it a choice, `boolean` is one between true and false."""
    if kind == "boolean":
        kind, choices = "choice", ("true", "false")
    if choices is not None:
        if tokens is not None:
            raise InputError("a gap has tokens and choices: its choices say how long it is")
        if len(set(choices)) != len(choices) or not any(choices):
            raise InputError(f"choices are {list(choices)!r:.80}: expected different texts")
        return Gap("choice", choices=tuple(choices), name=name)
    if kind not in LENGTHS:
        raise unknown_name("kind of gap", kind, [*LENGTHS, "boolean"])
    if tokens is not None and tokens < 1:
        raise InputError(f"a gap has {tokens} tokens: expected at least 1")
    return Gap(kind, tokens or LENGTHS[kind], name=name)  # type: ignore[arg-type]


def make_template(parts: Sequence[str | Gap]) -> Template:
    """Parts as a template: neighbouring texts are joined, empty ones left out."""
    joined: list[str | Gap] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    if not any(isinstance(part, Gap) for part in joined):
        raise InputError("a template has no gap: there is nothing to decode")
    return Template(tuple(joined))


def json_template(schema: dict[str, Any]) -> Template:
    """A JSON object with a gap for every value; whatever fills it, the text parses."""
    definitions = schema.get("$defs", {})
    return make_template(_value(schema, None, definitions, MAX_DEPTH))


def _value(
    schema: Any, name: str | None, definitions: dict[str, Any], depth: int
) -> list[str | Gap]:
    where = f"property {name!r}" if name else "the schema"
    if not isinstance(schema, dict):
        raise InputError(f"{where} is {schema!r:.60}: expected a JSON schema")
    if depth == 0:
        raise InputError(f"{where} is nested more than {MAX_DEPTH} deep")
    if "$ref" in schema:
        found = definitions.get(str(schema["$ref"]).removeprefix("#/$defs/"))
        if found is None:
            raise InputError(f"{where} refers to {schema['$ref']!r}: there is no such definition")
        return _value(found, name, definitions, depth - 1)
    if "const" in schema:
        return [json.dumps(schema["const"])]
    if "enum" in schema:
        values = schema["enum"]
        if not isinstance(values, list) or not values:
            raise InputError(f"{where}: enum is {values!r:.60}: expected a list of values")
        return [gap(choices=[json.dumps(value) for value in values], name=name)]
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in KEYWORDS:
        raise InputError(
            f"{where} has type {kind!r:.60}: expected one of {', '.join(KEYWORDS)}, or an enum"
        )
    _check_keywords(schema, kind, where)
    if kind == "object":
        return _object(schema, name, definitions, depth, where)
    if kind == "boolean":
        return [gap("boolean", name=name)]
    tokens = schema.get("maxTokens")
    if tokens is not None and (type(tokens) is not int or not 1 <= tokens <= 1024):
        raise InputError(f"{where}: maxTokens is {tokens!r:.60}: expected a number from 1 to 1024")
    value = gap(kind, tokens, name=name)
    return ['"', value, '"'] if kind == "string" else [value]


def _object(
    schema: dict[str, Any], name: str | None, definitions: dict[str, Any], depth: int, where: str
) -> list[str | Gap]:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        raise InputError(f"{where}: an object needs properties, all of which are written")
    parts: list[str | Gap] = []
    for i, (key, value) in enumerate(properties.items()):
        parts.append(("{" if i == 0 else ", ") + json.dumps(key) + ": ")
        parts += _value(value, f"{name}.{key}" if name else key, definitions, depth - 1)
    return [*parts, "}"]


def _check_keywords(schema: dict[str, Any], kind: str, where: str) -> None:
    known = EVERYWHERE | KEYWORDS[kind]
    for keyword in schema:
        if keyword not in known:
            raise unknown_name(f"keyword of a schema of type {kind}", keyword, known, f" ({where})")

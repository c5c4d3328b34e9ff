"""Plain values as bytes: exact builtin types only, as JSON with a tag where JSON lacks the type.

JSON and not pickle or marshal: the bytes come from a hostile process, and reading them must be
able to make nothing but plain data.
"""

import json
from collections.abc import Callable
from typing import Any

MAX_BYTES = 16 * 2**20  # one message
MAX_DEPTH = 100  # of nesting; also what stops a list that contains itself
_LONG = 2**64  # integers from here on travel as hexadecimal: decimal is slow, and capped by Python


class NotPlain(Exception):
    """A value that the channel does not carry, and why."""


class Malformed(Exception):
    """Bytes that no honest sender writes."""


def dump(value: Any, refer: Callable[[Any], int | None] | None = None) -> bytes:
    """The value as bytes; `refer` may give a number to an object that stays where it is."""
    try:
        data = json.dumps(_pack(value, 0, refer), separators=(",", ":")).encode()
    except RecursionError as error:
        raise NotPlain("a value nested too deep") from error
    if len(data) > MAX_BYTES:
        raise NotPlain(f"a value of {len(data)} bytes; at most {MAX_BYTES} are carried")
    return data


def load(data: bytes, resolve: Callable[[int], Any] | None = None) -> Any:
    """The value behind the bytes; `resolve` turns a number back into what it stands for."""
    try:
        return _unpack(json.loads(data), resolve)
    except (ValueError, TypeError, KeyError, LookupError, RecursionError) as error:
        raise Malformed(f"{type(error).__name__}: {str(error)[:100]}") from error


def _pack(value: Any, depth: int, refer: Callable[[Any], int | None] | None) -> Any:
    # type() and not isinstance(): an instance of a subclass can redefine ==.
    kind = type(value)
    if kind is str or kind is float or kind is bool or value is None:
        return value
    if kind is int:
        return value if -_LONG < value < _LONG else {"i": hex(value)}
    if depth >= MAX_DEPTH:
        raise NotPlain(f"a value nested more than {MAX_DEPTH} deep")
    if kind is list:
        return [_pack(item, depth + 1, refer) for item in value]
    if kind is dict:
        packed = [
            [_pack(k, depth + 1, refer), _pack(v, depth + 1, refer)] for k, v in value.items()
        ]
        return {"d": packed}
    if kind in _TAGS:
        return {_TAGS[kind]: [_pack(item, depth + 1, refer) for item in value]}
    if kind is bytes:
        return {"b": value.decode("latin-1")}
    if kind is complex:
        return {"c": [value.real, value.imag]}
    number = refer(value) if refer else None
    if number is not None:
        return {"r": number}
    raise NotPlain(f"a {kind.__name__!r} object")


_TAGS: dict[type, str] = {tuple: "t", set: "s", frozenset: "f"}


def _unpack(item: Any, resolve: Callable[[int], Any] | None) -> Any:
    if type(item) is list:
        return [_unpack(part, resolve) for part in item]
    if type(item) is not dict:
        return item  # json.loads makes exact None, bool, int, float and str
    ((tag, body),) = item.items()
    if tag == "d":
        return {_unpack(k, resolve): _unpack(v, resolve) for k, v in body}
    if tag == "t":
        return tuple([_unpack(part, resolve) for part in body])
    if tag == "s":
        return {_unpack(part, resolve) for part in body}
    if tag == "f":
        return frozenset([_unpack(part, resolve) for part in body])
    if tag == "i":
        return int(body, 16)
    if tag == "b":
        return body.encode("latin-1")
    if tag == "c":
        real, imaginary = body
        return complex(float(real), float(imaginary))
    if tag == "r" and resolve and type(body) is int:
        return resolve(body)
    raise ValueError(f"unknown tag {tag[:10]!r}")

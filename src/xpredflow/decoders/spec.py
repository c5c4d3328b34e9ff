"""Decoders as they are written, the same everywhere: NAME[:VALUE][+OPTION=VALUE]...

`threshold:0.8`, `flow:learned:tiny+tau=0.95`, `mask:margin+budget=1/4`. The value after the colon
is the decoder's main option. A sweep is a spec whose last value is a list: `threshold:0.5,0.7,0.9`.
"""

import re
from typing import Any, NamedTuple

from xpredflow.errors import InputError


class Spec(NamedTuple):
    """A decoder's name, the value behind its colon, and its options as text."""

    name: str
    value: str | None
    options: dict[str, str]


def parse_spec(text: str) -> Spec:
    """One decoder as it was written; names are checked where the decoder is built."""
    # only a plus in front of NAME= begins an option: a path may hold others
    head, *rest = re.split(r"\+(?=[A-Za-z_]\w*=)", text.strip())
    name, colon, value = head.partition(":")
    if not name:
        raise InputError(f"decoder {text!r} has no name: write NAME[:VALUE][+OPTION=VALUE]")
    if colon and not value:
        raise InputError(f"decoder {text!r}: nothing follows the colon; write {name!r} alone")
    options: dict[str, str] = {}
    for pair in rest:
        option, _, given = pair.partition("=")
        if option in options:
            raise InputError(f"decoder {text!r}: {option} was given twice; give it once")
        options[option] = given
    return Spec(name, value or None, options)


def expand_sweep(text: str) -> dict[str, str]:
    """The specs of a sweep by the value in which they differ: the list at the spec's end."""
    at = max(text.rfind("="), text.rfind(":"))
    values = [value.strip() for value in text[at + 1 :].split(",") if value.strip()]
    if at < 0 or not values:
        raise InputError(
            f"sweep {text!r}: end it with a list of values, such as threshold:0.7,0.8,0.9 or"
            " flow:power:8+tau=0.8,0.9"
        )
    return {value: text[: at + 1] + value for value in values}


def with_options(spec: Spec, options: dict[str, Any]) -> dict[str, Any]:
    """The spec's own options and those given beside it; nothing may be said twice."""
    for name in spec.options:
        if name in options:
            raise InputError(
                f"{name} is {spec.options[name]!r} in the decoder's spec and {options[name]!r}"
                " beside it: give it once"
            )
    return {**spec.options, **options}

"""Options that were given by name: flags and NAME=VALUE pairs, merged without a double."""

from typing import Any

from xpredflow.errors import InputError


def merged(
    named: dict[str, Any], pairs: list[str] | None, flag: str = "-o", example: str = "tau=0.95"
) -> dict[str, Any]:
    """Options with a flag of their own and NAME=VALUE pairs; nothing may be said twice."""
    options = dict(named)
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InputError(f"{flag} {pair!r}: expected NAME=VALUE, such as {flag} {example}")
        if name in options:
            raise InputError(f"{flag} {pair!r}: {name} was given before; give it once")
        options[name] = value
    return options


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Only what the user said: every default is declared where it is used."""
    return {name: value for name, value in values.items() if value is not None}

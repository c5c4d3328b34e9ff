"""Options by name: one declaration (a dataclass), checked values, no silent misspellings."""

from dataclasses import fields
from fractions import Fraction
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from xpredflow.errors import InputError, unknown_name

_NOTHING = ("none", "off", "")
T = TypeVar("T")


def option_names(cls: type) -> list[str]:
    """The options that a dataclass declares."""
    return [f.name for f in fields(cls)]


def checked(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """Values in the types that `cls` declares; text is converted, as the command line gives it."""
    hints = get_type_hints(cls)
    return {name: convert(name, value, hints[name]) for name, value in values.items()}


def configured(cls: type[T], values: dict[str, Any], command: str) -> T:
    """The settings of a command; a misspelt one is refused with the nearest valid name."""
    for name in values:
        if name not in option_names(cls):
            raise unknown_name("setting", name, option_names(cls), f" of {command}")
    return cls(**checked(cls, values))


def convert(name: str, value: Any, hint: Any) -> Any:
    """One value as its declared type, or an error that names it."""
    choices = _alternatives(hint)
    for choice in choices:
        converted = _try(value, choice)
        if converted is not _FAILED:
            return converted
    expected = " or ".join(_describe(choice) for choice in choices)
    raise InputError(f"{name} is {value!r}: expected {expected}")


_FAILED = object()


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _describe(choice: Any) -> str:
    if choice is NoneType:
        return "off"
    if get_origin(choice) is Literal:
        return ", ".join(map(repr, get_args(choice)))
    return {int: "a whole number", float: "a number or a fraction such as 1/16"}.get(
        choice, getattr(choice, "__name__", str(choice))
    )


def _try(value: Any, choice: Any) -> Any:
    if choice is NoneType:
        return None if value is None or _text(value) in _NOTHING else _FAILED
    if get_origin(choice) is Literal:
        return value if value in get_args(choice) else _FAILED
    if choice is bool:
        truth = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
        return value if isinstance(value, bool) else truth.get(str(_text(value)), _FAILED)
    if choice in (int, float):
        return _number(value, choice)
    return value if isinstance(value, get_origin(choice) or choice) else _FAILED


def _text(value: Any) -> str | None:
    return value.lower() if isinstance(value, str) else None


def _number(value: Any, choice: type) -> Any:
    if isinstance(value, bool):
        return _FAILED
    if choice is int and isinstance(value, str) and "/" in value:
        return _FAILED  # 1/1 of the length is not one pass
    try:
        exact = Fraction(value) if isinstance(value, str) else value
        number = choice(exact)
    except (ValueError, TypeError, ZeroDivisionError):
        return _FAILED
    return number if choice is float or number == exact else _FAILED

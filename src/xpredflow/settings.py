"""Settings by name: declared once, validated by pydantic, converted from text, never misspelt.

@settings
class Threshold:
    threshold: float = Field(0.9, ge=0, le=1, description="commit where c reaches this")

A bad value is an InputError that names it and what was expected. `configured` also reads text as a
user types it: `1/16` is a number, `off` or `none` is None where a setting may be left out.
"""

import dataclasses
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, wraps
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import pydantic
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from xpredflow.errors import InputError, unknown_name

T = TypeVar("T")
_NOTHING = ("none", "off", "")
_RATIO = re.compile(r"\s*-?\d{1,15}\s*/\s*\d{1,15}\s*")
# What no setting exceeds, whatever it declares: sums and products of them must stay numbers.
LARGEST_WHOLE, LARGEST = 10**12, 1e9
_CONFIG = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False, extra="forbid")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def settings(cls: type[T]) -> type[T]:
    """A frozen dataclass whose values are validated when it is made."""
    made: Any = pydantic.dataclasses.dataclass(frozen=True, config=_CONFIG)(cls)
    original = made.__init__

    @wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except ValidationError as error:
            raise _as_input_error(error, type(self)) from None
        for name in _declared(type(self)):
            _check_size(name, getattr(self, name))

    made.__init__ = __init__
    return made


def grouped(group: str) -> Callable[..., Any]:
    """How the settings of a group are declared; a command's help lists them under that heading.

    run = grouped("Run")
    updates: int = run(100, "updates in all", ge=1)
    """

    def setting(default: Any, description: str, **bounds: Any) -> Any:
        return Field(default, description=description, json_schema_extra={"group": group}, **bounds)

    return setting


def _check_size(name: str, value: Any) -> None:
    most = LARGEST_WHOLE if type(value) is int else LARGEST
    if type(value) in (int, float) and most < abs(value) < math.inf:
        found = f"{value:.6g}" if abs(value) < sys.float_info.max else "a number of many digits"
        raise InputError(f"{name} is {found}: expected a number from -{most:g} to {most:g}")


def _from_text(value: Any, hint: Any) -> Any:
    choices = _alternatives(hint)
    if isinstance(value, bool) and bool not in choices and {int, float} & {*choices}:
        return repr(value)  # pydantic would read True as 1
    if not isinstance(value, str):
        return value
    nothing = _NOTHING if bool not in choices else ("none",)  # off is False there
    if NoneType in choices and value.lower() in nothing:
        return None
    if float in choices and _RATIO.fullmatch(value):
        below = Fraction(value.split("/")[1].strip())
        return float(Fraction(value.replace(" ", ""))) if below else value
    if int in choices and str in choices and re.fullmatch(r"-?\d{1,15}", value):
        return int(value)
    return value


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def option_names(cls: type) -> list[str]:
    """The settings that a class declares; none where it is no dataclass."""
    return list(_declared(cls))


# What is read off a class and a type is read once: every request of a server asks for it.
@cache
def _declared(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else ()


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def configured(cls: type[T], values: dict[str, Any], where: str) -> T:
    """The settings of something; a misspelt one is refused with the nearest valid name."""
    for name in values:
        if name not in option_names(cls):
            raise unknown_name("setting", name, option_names(cls), f" of {where}")
    return cls(**checked(cls, values))


def checked(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """Values in the types that `cls` declares; text is converted, as the command line gives it."""
    hints = _hints(cls)
    return {name: convert(name, value, hints[name]) for name, value in values.items()}


def convert(name: str, value: Any, hint: Any) -> Any:
    """One value as its declared type, or an error that names it."""
    try:
        return _adapter(hint).validate_python(_from_text(value, hint))
    except ValidationError as error:
        raise InputError(f"{name} is {value!r}: {_expected(error.errors())}") from None


@dataclass(frozen=True)
class Setting:
    """One declared setting, for help texts, flags and catalogues."""

    name: str
    hint: Any
    default: Any  # dataclasses.MISSING where there is none
    help: str
    group: str

    @property
    def written_default(self) -> str:
        """The default as a user would write it."""
        if self.default is None:
            return "none"
        if isinstance(self.default, bool):
            return "on" if self.default else "off"
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


def described(cls: Any) -> list[Setting]:
    """Every setting with its default, its help text and the group; none if it declares none."""
    if not dataclasses.is_dataclass(cls):
        return []
    infos: dict[str, FieldInfo] = getattr(cls, "__pydantic_fields__", {})
    hints = _hints(cls)
    found = []
    for declared in dataclasses.fields(cls):
        info, default = infos.get(declared.name), declared.default
        if isinstance(default, FieldInfo):
            info, default = default, default.default
        extra = info.json_schema_extra if info is not None else None
        group = str(extra.get("group", "")) if isinstance(extra, dict) else ""
        text = (info.description or "") if info is not None else ""
        found.append(Setting(declared.name, hints[declared.name], default, text, group))
    return found


def _as_input_error(error: ValidationError, cls: type) -> InputError:
    """The first complaint, with all that the value may be."""
    errors = error.errors()
    first = errors[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):  # a check of several settings together
        return cause
    at = first["loc"][0] if first["loc"] else cls.__name__
    name = option_names(cls)[at] if isinstance(at, int) else str(at)  # a number: given by place
    if first["type"] == "unexpected_keyword_argument":
        return unknown_name("setting", name, option_names(cls), f" of {cls.__name__}")
    if first["type"] in ("missing", "missing_argument"):
        return InputError(f"{name} is missing: {cls.__name__} needs it")
    same = [e for e in errors if e["loc"][:1] == first["loc"][:1]]
    return InputError(f"{name} is {first['input']!r}: {_expected(same)}")


_BOUNDS = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", "≥"),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "≤"),
}


def _expected(errors: Any) -> str:
    """What pydantic expected, in our words; alternatives are joined."""
    return "expected " + " or ".join(dict.fromkeys(_one_expected(error) for error in errors))


def _one_expected(error: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _BOUNDS:
        key, sign = _BOUNDS[kind]
        return f"a number {sign} {context[key]:g}"
    if kind.startswith("int"):
        return "a whole number"
    if kind.startswith(("float", "finite")):
        return "a number or a fraction such as 1/16"
    if kind.startswith("bool"):
        return "on or off"
    if kind == "literal_error":
        return context["expected"]
    if kind.startswith("none"):
        return "off"
    if kind.startswith("string"):
        return "a text"
    return error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")


__all__ = [
    "Field",
    "Literal",
    "Setting",
    "checked",
    "configured",
    "convert",
    "described",
    "option_names",
    "settings",
]

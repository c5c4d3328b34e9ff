"""Errors a user can act on: each message names the value, what was expected and the fix."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, TypeVar

T = TypeVar("T")


class InputError(ValueError):
    """Bad input. The command line prints the message alone, without a traceback."""


class WriteError(InputError):
    """A file that could not be written; the message says what is kept and how to go on."""


class Recovered(UserWarning):
    """Something was damaged and could be got round; the command line shows it as a note."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during decoding; `finished` holds what was complete by then."""

    def __init__(self, finished: list) -> None:
        super().__init__(f"interrupted with {len(finished)} finished")
        self.finished = finished


def unknown_name(kind: str, name: str, valid: Iterable[str], where: str = "") -> InputError:
    """The error for a name that does not exist, with the nearest one that does."""
    valid = sorted(valid)
    near = get_close_matches(name, valid, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InputError(f"unknown {kind} {name!r}{where}: {hint}Valid: {', '.join(valid)}")


def checked_instance(item: Any, kind: type[T], name: str, expected: str) -> T:
    """The item, unless it only looks like one of its kind: its class, or without its methods."""
    if isinstance(item, type):
        raise InputError(f"{name} is the class {item.__name__}: give {item.__name__}()")
    if not isinstance(item, kind):
        raise InputError(f"{name} is {item!r}: expected {expected}")
    return item

"""Shapes are checked at run time in all tests; what only repeats itself goes without.

A pass of a small model takes less time than the check of every call in it. So a function is checked
on each new combination of its arguments' shapes and types, ENOUGH times in a test, then now and
then; ALL_SHAPES=1 in the environment checks every call.
"""

import os
from collections import Counter
from collections.abc import Callable
from functools import wraps
from types import CodeType
from typing import Any

import jaxtyping
from torch import Tensor

ENOUGH, NOW_AND_THEN = 4, 16
ENOUGH_DEFINITIONS = 50  # of a function inside a function, which each need a check of their own
_calls: Counter[Any] = Counter()
_definitions: Counter[CodeType] = Counter()


def check_sparingly() -> None:
    """Before anything of the package is imported."""
    original: Any = jaxtyping.jaxtyped

    def jaxtyped(**how: Any) -> Callable[[Any], Any]:
        def decorate(made: Any) -> Any:
            code = getattr(made, "__code__", None)
            if code is None:
                return original(**how)(made)
            if "<locals>" in made.__qualname__:
                _definitions[code] += 1
                return made if _definitions[code] > ENOUGH_DEFINITIONS else original(**how)(made)
            return _sparing(made, original(**how)(made), code)

        return decorate

    if not os.environ.get("ALL_SHAPES"):
        jaxtyping.jaxtyped = jaxtyped  # the name by which the import hook writes it


def next_test() -> None:
    """Every test begins anew."""
    _calls.clear()


def _sparing(plain: Any, checked: Any, code: CodeType) -> Any:
    @wraps(plain)
    def either(*args: Any, **named: Any) -> Any:
        key = (code, *map(_kind, args), *named, *map(_kind, named.values()))
        _calls[key] += 1
        count = _calls[key]
        if count <= ENOUGH or count % NOW_AND_THEN == 0:
            return checked(*args, **named)
        return plain(*args, **named)

    return either


def _kind(value: Any) -> Any:
    return (value.shape, value.dtype) if isinstance(value, Tensor) else type(value)

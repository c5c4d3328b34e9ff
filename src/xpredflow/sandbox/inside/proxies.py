"""What the tests see of a candidate: functions and objects that are only messages."""

from collections.abc import Callable
from typing import Any

from .asking import Candidate, Handle


def function(candidate: Candidate, name: str) -> Callable[..., Any]:
    """A function of the program, to be called with and to return plain values."""

    def proxy(*args: Any, **kwargs: Any) -> Any:
        answer = candidate.ask("call", name, list(args), kwargs)
        if type(answer) is not list or len(answer) != 2:
            raise candidate.fail("the program sent a malformed answer (no result)")
        result, changed = answer
        if changed is not None:
            _copy_back([list(args), kwargs], changed)
        return result

    proxy.__name__ = name
    return proxy


def constructor(candidate: Candidate, name: str) -> Callable[..., Handle]:
    """A class of the program. Only what tests make with it has a handle."""

    def proxy(*args: Any, **kwargs: Any) -> Handle:
        number = candidate.ask("new", name, list(args), kwargs)
        if type(number) is not int:
            raise candidate.fail("the program sent a malformed answer (no object)")
        return candidate.handles.setdefault(number, Handle(candidate, number))

    return proxy


def _copy_back(old: Any, new: Any) -> None:
    """Make the caller's containers equal to what the call left of them, keeping their identity."""
    if type(old) is not type(new):
        return
    if type(old) is list:
        for i, (mine, theirs) in enumerate(zip(old, new, strict=False)):
            old[i] = _merged(mine, theirs)
        old[len(new) :] = new[len(old) :]
    elif type(old) is dict:
        merged = {key: _merged(old.get(key), value) for key, value in new.items()}
        old.clear()
        old.update(merged)
    elif type(old) is set:
        old.clear()
        old.update(new)
    elif type(old) is tuple:
        for mine, theirs in zip(old, new, strict=False):
            _copy_back(mine, theirs)


def _merged(old: Any, new: Any) -> Any:
    """The old object brought up to date where it can be, else the new one."""
    if type(old) in (list, dict, set, tuple):
        _copy_back(old, new)
    return old if type(old) is type(new) and old == new else new

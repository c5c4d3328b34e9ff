"""The process that executes the candidate's program. Nothing it says is believed.

It holds one channel, to the judge, over which it is asked for values. It never sees a test, an
expected value or the way to the verdict.
"""

import builtins
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from .channel import Channel
from .values import NotPlain, dump, load

OUT_OF_MEMORY = 77  # exit status when there is not even memory for an answer
MODULE = "program"


class Program:
    """The loaded program, and the objects of its own classes that tests hold on to."""

    def __init__(self) -> None:
        self.module = types.ModuleType(MODULE)
        self.kept: list[Any] = []
        self.request = b""

    def load(self, source: str, names: list[str]) -> dict[str, str]:
        """Execute the program; say which of the wanted names it defines, and as what."""
        sys.modules[MODULE] = self.module  # dataclasses and typing look their module up
        scope = self.module.__dict__
        exec(compile(source, "<program>", "exec"), scope)
        return {name: _kind(scope[name]) for name in names if name in scope}

    def value(self, name: str) -> Any:
        return self.module.__dict__[name]

    def call(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The result, and the arguments as the call has left them."""
        result = self.module.__dict__[name](*args, **kwargs)
        # Written again in the judge's words: other bytes than it sent are changed arguments.
        after = dump(["call", name, args, kwargs], self._number)
        return [result, None if after == self.request else [args, kwargs]]

    def new(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> int:
        """Make an object of the program's own class and keep it; the judge gets its number."""
        self.kept.append(self.module.__dict__[name](*args, **kwargs))
        return len(self.kept) - 1

    def get(self, number: int, attribute: str) -> Any:
        return getattr(self.kept[number], attribute)

    def set(self, number: int, attribute: str, value: Any) -> None:
        setattr(self.kept[number], attribute, value)

    def _number(self, value: Any) -> int | None:
        return next((i for i, kept in enumerate(self.kept) if kept is value), None)

    def answer(self, request: bytes) -> bytes:
        self.request = request
        action, *arguments = load(request, lambda number: self.kept[number])
        return dump(["returned", getattr(self, action)(*arguments)], self._number)


def serve(channel: Channel) -> None:
    """Answer until the judge has gone, or the program ends this process."""
    program = Program()
    while True:
        request = channel.receive()
        channel.send(_guarded(program.answer, request))


def _guarded(answer: Callable[[bytes], bytes], request: bytes) -> bytes:
    try:
        return answer(request)
    except NotPlain as error:
        return dump(["not plain", str(error)])
    except SystemExit as error:
        return dump(["exited", "" if error.code is None else _text(error.code)])
    except MemoryError:
        return dump(["out of memory"])
    except BaseException as error:
        return dump(["raised", *_describe(error)])


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "value"


def _describe(error: BaseException) -> list[Any]:
    """The name, the nearest builtin exception, the message and the line in the program."""
    names = [cls.__name__ for cls in type(error).__mro__]
    builtin = next(name for name in names if hasattr(builtins, name))
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "<program>":
            line = trace.tb_lineno
        trace = trace.tb_next
    message = error.msg if isinstance(error, SyntaxError) else _text(error)
    return [names[0], builtin, message, line]


def _text(value: Any) -> str:
    try:
        return str.__str__(str(value))[:300]
    except BaseException:
        return "?"


def main(channel: Channel) -> None:
    try:
        serve(channel)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    finally:
        os._exit(1)

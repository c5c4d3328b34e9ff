"""The judge's side of the channel: what is asked of a candidate, and what the answers mean."""

import builtins
import reprlib
from typing import Any, NamedTuple

from .channel import Channel, Ended, TimedOut
from .values import Malformed, NotPlain, dump, load

_short = reprlib.Repr()
_short.maxlevel = 4
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _short.maxfrozenset = 12
_short.maxstring = _short.maxother = 80

TIMED_OUT, ENDED = "timed out", "ended"  # the host has the words: it knows the exit status


class Failed(BaseException):
    """The run is decided. Not an Exception, so that a test's `except Exception` lets it pass."""


class CandidateError(Exception):
    """The candidate raised an exception that is no builtin one."""


class _Raised(NamedTuple):
    """An exception on its way out of the code that reads answers."""

    error: Exception


class Candidate:
    """A program in another process. Its first failure is final, whatever tests do with it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.handles: dict[int, Handle] = {}  # stand for objects that the tests made in there
        self.failure: str | None = None
        self.asked = 0  # how often tests used it; loading it is no test
        self._sent = self._answer = b""  # of the last call; put into words only when it failed

    def ask(self, *request: Any) -> Any:
        """The answer's value; a builtin exception if the candidate raised; or Failed."""
        self.asked += request[0] != "load"
        answer = self._exchange(request)
        try:
            outcome = self._read(*load(answer, self.handles.__getitem__))
        except (Malformed, ValueError, TypeError, LookupError) as error:
            raise self.fail(f"the program sent a malformed answer ({error})") from error
        if isinstance(outcome, _Raised):
            raise outcome.error
        return outcome

    def _exchange(self, request: tuple[Any, ...]) -> bytes:
        if self.failure:
            raise Failed(self.failure)
        try:
            self._sent, self._answer = dump(list(request), _number_of), b""
            self._channel.send(self._sent)
            self._answer = self._channel.receive()
            return self._answer
        except NotPlain as error:
            raise self.fail(f"the tests pass {error}, which cannot be sent") from error
        except TimedOut as error:
            raise self.fail(TIMED_OUT) from error
        except Ended as error:
            raise self.fail(ENDED) from error

    def _read(self, kind: str, *body: Any) -> Any:
        if kind == "returned":
            (value,) = body
            return value
        if kind == "raised":
            return _Raised(_exception(*body))
        if kind == "not plain":
            raise self.fail(f"{self.last_call()} gave {body[0]}; only plain values are compared")
        if kind == "exited":
            raise self.fail(f"the program called exit({body[0]:.40}) before the tests were done")
        if kind == "out of memory":
            raise self.fail("out of memory")
        raise Malformed(f"kind {short(kind)}")

    def fail(self, reason: str) -> Failed:
        self.failure = self.failure or reason
        return Failed(reason)

    def last_call(self) -> str:
        """'f([1, 2]) returned 3', for the reason of a verdict."""
        if not self._sent:
            return "no call"
        action, name, *arguments = load(self._sent, self.handles.__getitem__)
        if action not in ("call", "new"):
            return f"{action} {short(name)}"
        args, kwargs = arguments
        words = [short(arg) for arg in args] + [f"{k}={short(v)}" for k, v in kwargs.items()]
        return f"{name}({', '.join(words)}){self._last_outcome()}"

    def _last_outcome(self) -> str:
        try:
            kind, *body = load(self._answer, self.handles.__getitem__)
            if kind == "returned":
                return f" returned {short(body[0][0])}"
            return f" raised {described(_exception(*body))}" if kind == "raised" else ""
        except (Malformed, ValueError, TypeError, LookupError):
            return ""


class Handle:
    """An object that lives in the candidate. Equal to itself only: == is never forwarded."""

    __slots__ = ("_candidate", "_number")
    _candidate: Candidate
    _number: int

    def __init__(self, candidate: Candidate, number: int) -> None:
        object.__setattr__(self, "_candidate", candidate)
        object.__setattr__(self, "_number", number)

    def __getattr__(self, name: str) -> Any:
        return self._candidate.ask("get", self._number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._candidate.ask("set", self._number, name, value)

    def __repr__(self) -> str:
        return f"<object {self._number}>"


def _number_of(value: Any) -> int | None:
    return value._number if type(value) is Handle else None


def _exception(name: str, builtin: str, message: str, line: Any) -> Exception:
    cls = getattr(builtins, str(builtin), None)
    if not isinstance(cls, type) or not issubclass(cls, Exception):
        cls = CandidateError
    try:
        error = cls(str(message))
    except TypeError:  # UnicodeDecodeError and a few more want other arguments
        error = CandidateError(str(message))
    error.candidate_name = str(name)  # type: ignore[attr-defined]
    error.candidate_line = line if type(line) is int else None  # type: ignore[attr-defined]
    return error


def described(error: BaseException) -> str:
    """'SyntaxError: invalid syntax (line 2 of the program)'."""
    name = getattr(error, "candidate_name", type(error).__name__)
    line = getattr(error, "candidate_line", None)
    text = str(error.args[0]) if error.args else ""
    place = f" (line {line} of the program)" if line else ""
    return f"{name[:100]}{': ' if text else ''}{text[:300]}{place}"


def short(value: Any) -> str:
    """repr(), cut to about a line."""
    try:
        text = _short.repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        text = "a very long integer"
    return text if len(text) <= 200 else text[:197] + "..."

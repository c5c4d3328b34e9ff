"""The process that decides. It runs the trusted tests and never executes candidate code."""

import sys
import time
from typing import Any, NamedTuple

from .asking import Candidate, Failed, described, short
from .channel import Channel, Ended
from .proxies import constructor, function
from .values import Malformed

TESTS = "<tests>"
PASSED = "passed"


class Request(NamedTuple):
    """One run: the untrusted program, and the trusted tests as pairs or as code."""

    program: str
    names: list[str]  # of the program, that the tests use
    pairs: list[Any] | None  # [arguments, expected value], called on names[0]
    setup: str
    suite: str
    aliases: dict[str, str]  # names in the tests for names of the program


def decide(request: Request, channel: Channel) -> tuple[bool, str]:
    """Whether every test passes, and the reason in words."""
    candidate = Candidate(channel)
    try:
        try:
            kinds = candidate.ask("load", request.program, request.names)
        except Exception as error:
            return False, described(error)
        if type(kinds) is not dict or kinds.get(request.names[0]) not in ("function", "class"):
            return False, f"program does not define {request.names[0]!r}"
        if request.pairs is not None:
            reason = _run_pairs(candidate, request.names[0], request.pairs)
        else:
            reason = _run_suite(candidate, request, kinds)
    except Failed as failed:
        reason = str(failed)
    # A test may swallow any exception with a bare except; the candidate's failure stays.
    reason = candidate.failure or reason
    if reason is None and not candidate.asked:
        reason = "the tests never used the program: there is nothing that it passed"
    return reason is None, reason or PASSED


def _run_pairs(candidate: Candidate, name: str, pairs: list[Any]) -> str | None:
    call = function(candidate, name)
    for number, (args, expected) in enumerate(pairs, start=1):
        try:
            got = call(*args)
        except Exception:
            return f"test {number}: {candidate.last_call()}, expected {short(expected)}"
        if not identical(got, expected):
            return f"test {number}: {candidate.last_call()}, expected {short(expected)}"
    return None


def identical(got: Any, expected: Any) -> bool:
    """Equal, and of equal types all the way down.

    1 == True == 1.0, and a function that returns another type is not the one asked for.
    """
    if type(got) is not type(expected) or got != expected:
        return False
    if type(got) in (list, tuple):
        return all(map(identical, got, expected))
    if type(got) in (set, frozenset):
        theirs = {item: item for item in expected}
        return all(identical(item, theirs[item]) for item in got)
    if type(got) is dict:
        keys = {key: key for key in expected}
        return all(identical(k, keys[k]) and identical(v, expected[k]) for k, v in got.items())
    return True


def _run_suite(candidate: Candidate, request: Request, kinds: dict[str, Any]) -> str | None:
    scope: dict[str, Any] = {"__name__": "tests"}
    proxies = _proxies(candidate, request.names, kinds)
    proxies |= {alias: proxies.get(name) for alias, name in request.aliases.items()}
    source = request.setup
    try:
        scope |= proxies
        exec(compile(source, TESTS, "exec"), scope)
        scope |= proxies  # the setup may hold a stub of the function that is asked for
        source = request.suite
        exec(compile(source, TESTS, "exec"), scope)
    except Exception as error:
        return _failed_line(error, source, candidate.last_call())
    return None


def _proxies(candidate: Candidate, names: list[str], kinds: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        kind = kinds.get(name)
        if kind == "function":
            found[name] = function(candidate, name)
        elif kind == "class":
            found[name] = constructor(candidate, name)
        elif kind == "value":
            found[name] = candidate.ask("value", name)
    return found


def _failed_line(error: Exception, source: str, last_call: str) -> str:
    """'assert f(1) == 2: f(1) returned 3'."""
    line, trace = "", error.__traceback__
    lines = source.splitlines()
    while trace:
        if trace.tb_frame.f_code.co_filename == TESTS and trace.tb_lineno <= len(lines):
            line = lines[trace.tb_lineno - 1].strip()[:200]
        trace = trace.tb_next
    if not isinstance(error, AssertionError) and not hasattr(error, "candidate_name"):
        return f"{line}: {described(error)}"
    return f"{line}: {last_call}"


def main(request: Request, reader: int, writer: int, seconds: float) -> tuple[bool, str]:
    sys.setrecursionlimit(2000)
    try:
        return decide(request, Channel(reader, writer, time.monotonic() + seconds))
    except (Ended, Malformed, RecursionError, MemoryError) as error:
        return False, f"the tests failed on the program's values: {type(error).__name__}"

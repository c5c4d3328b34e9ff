"""Damage to files: bytes changed, cut, doubled; values of JSON replaced by what nobody expects."""

import copy
import json
import tomllib
from random import Random
from typing import Any

import tomli_w

NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 1e308, -1e308, 0.5, float("nan")),
    *(float("inf"), "", "x", "\u2028\u0085", "\ud800", "../../etc/passwd", "0", [], {}, [[]]),
    *([1, "a", None], {"a": {"b": []}}, [0] * 1000, "y" * 10_000),
)


def damaged(data: bytes, rng: Random) -> bytes:
    """Bytes with one thing wrong: as a disk, an editor or an attacker leaves them."""
    kind, at = rng.randrange(7), rng.randrange(len(data) + 1)
    some = rng.randbytes(rng.choice((1, 4, 100)))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + some + data[at:]
    if kind == 2:
        return data[:at] + some + data[at + len(some) :]
    if kind == 3:
        return data[:at] + data[at + len(some) :]
    if kind == 4:
        return data + data
    if kind == 5:
        return rng.choice((b"", b"\0" * 64, b"[" * 50_000, b'{"a":' * 50_000, b"\xff\xfe", b"null"))
    return data[:at] + data[at : at + 50] + data[at:]


def damaged_json(data: bytes, rng: Random) -> bytes:
    """One object with one value replaced, removed or added, anywhere in it."""
    value = copy.deepcopy(json.loads(data))
    places = list(_places(value))
    if not places:
        return damaged(data, rng)
    holder, key = rng.choice(places)
    if rng.random() < 0.2:
        del holder[key]
    elif rng.random() < 0.1 and isinstance(holder, dict):
        holder[str(key) + "x"] = rng.choice(NASTY)
    else:
        holder[key] = rng.choice(NASTY)
    return json.dumps(value).encode()


def damaged_toml(data: bytes, rng: Random) -> bytes:
    """The same for a TOML file; what TOML cannot hold is left as it was."""
    value = json.loads(damaged_json(json.dumps(tomllib.loads(data.decode())).encode(), rng))
    try:
        return tomli_w.dumps(value).encode()
    except (AttributeError, TypeError, ValueError):
        return damaged(data, rng)


def damaged_line(data: bytes, rng: Random) -> bytes:
    """The same for one line of a file of JSON lines."""
    lines = data.rstrip(b"\n").split(b"\n")
    number = rng.randrange(len(lines))
    lines[number] = damaged_json(lines[number], rng)
    return b"\n".join(lines) + b"\n"


def _places(value: Any) -> Any:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in list(keys) if isinstance(value, dict | list) else ():
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])

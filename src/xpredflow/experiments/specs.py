"""Decoders as they are written for a comparison: NAME[:VALUE][+OPTION=VALUE]..., with sweeps.

`threshold:{0.5,0.7,0.9}` is one decoder with a point for each value in braces. Such a sweep, or a
`+budget=...`, replaces the budgets; any other decoder is run under each of them.
"""

import re
from dataclasses import dataclass
from typing import Any

from xpredflow.decoders import DECODERS
from xpredflow.engine.budget import FULL, parse_budget
from xpredflow.errors import InputError, unknown_name
from xpredflow.experiments.bench import Trial

SWEEP = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Variant:
    """One point to be: how it differs from the decoder's other points, and how to decode."""

    label: str
    trial: Trial


@dataclass(frozen=True)
class Contender:
    """A decoder as it was written, and its points."""

    spec: str
    variants: tuple[Variant, ...]


def contenders(text: str, budgets: list[str]) -> list[Contender]:
    """Every decoder of a list separated by commas."""
    specs = _split(text)
    if not specs:
        raise InputError("no decoders were given: such as flow:confidence,threshold:{0.7,0.9},mask")
    for spec in specs:
        if specs.count(spec) > 1:
            raise InputError(f"decoder {spec!r} was given twice: give it once")
    return [Contender(spec, _variants(spec, budgets)) for spec in specs]


def budgets_of(text: str) -> list[str]:
    """Budgets separated by commas, each once: passes (`16`) or shares (`1/4`, `25%`, `full`)."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise InputError("no budgets were given: such as 1/8,1/4,full")
    parsed = [parse_budget(budget) for budget in found]  # 1, a pass, is not 1/1, all of them
    return list({repr(p): b for p, b in zip(parsed, found, strict=True)}.values())


def _split(text: str) -> list[str]:
    """At commas outside braces."""
    parts = re.split(r",(?![^{}]*\})", text)
    return [part.strip() for part in parts if part.strip()]


def _variants(spec: str, budgets: list[str]) -> tuple[Variant, ...]:
    sweeps = SWEEP.findall(spec)
    if len(sweeps) > 1 or set(SWEEP.sub("", spec)) & {*"{}"}:
        raise InputError(
            f"decoder {spec!r}: expected at most one list of values in braces, such as"
            " threshold:{0.7,0.9}"
        )
    if not sweeps:
        trial = _trial(spec)
        if "budget" in trial.options:
            return (Variant(f"budget {trial.options['budget']}", trial),)
        return tuple(Variant(f"budget {share}", _trial(spec, share)) for share in budgets)
    values = [value.strip() for value in sweeps[0].split(",") if value.strip()]
    if not values:
        raise InputError(f"decoder {spec!r}: the braces are empty; list values, such as {{1,2}}")
    filled = {value: SWEEP.sub(lambda _, v=value: v, spec) for value in values}
    return tuple(Variant(value, _trial(one, FULL)) for value, one in filled.items())


def _trial(spec: str, share: str | None = None) -> Trial:
    """One decoder without a sweep; `share` is its budget where it does not state its own."""
    # only a plus in front of NAME= begins an option: paths may hold others
    head, *rest = re.split(r"\+(?=\w+=)", spec)
    name, colon, value = head.partition(":")
    if name not in DECODERS:
        raise unknown_name("decoder", name, DECODERS, f" in {spec!r}")
    pairs = [pair.partition("=") for pair in rest]
    options: dict[str, Any] = {option: given for option, _, given in pairs}
    main = DECODERS.entry(name).about.get("main")
    if colon and main is not None:
        if not value:
            raise InputError(f"decoder {spec!r}: nothing follows the colon; write {name!r} alone")
        options = {main: value, **options}
    if share not in (None, FULL):
        options = {"budget": share, **options}
    return Trial(name, options)

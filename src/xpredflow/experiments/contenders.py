"""The decoders of a comparison and the points each is measured at.

A decoder is run under each of the budgets, a sweep once per value of the list at its end, at full
budget; `+budget=...` in either replaces that.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from xpredflow.decoders import DECODERS
from xpredflow.decoders.spec import expand_sweep, parse_spec
from xpredflow.engine.budget import FULL, parse_budget
from xpredflow.engine.request import resolve
from xpredflow.errors import InputError, unknown_name
from xpredflow.experiments.bench import Trial

BUDGETS = ("1/16", "1/8", "1/4", "1/2", FULL)
_OWN_BUDGET = {"budget", "steps"}  # either name of the option


@dataclass(frozen=True)
class Variant:
    """One point to be: the value of its sweep, if it is of one, and how to decode."""

    setting: str
    trial: Trial


@dataclass(frozen=True)
class Contender:
    """A decoder or a sweep as it was written, and its points."""

    spec: str
    variants: tuple[Variant, ...]


def contenders(
    decoders: Iterable[str],
    sweeps: Iterable[str],
    budgets: Iterable[str | int],
    capped_sweeps: bool = False,
) -> list[Contender]:
    """Every decoder and every sweep, in the order in which they were given.

    With `capped_sweeps` a sweep is run under each of the budgets, as a decoder is.
    """
    decoders, sweeps = [text.strip() for text in decoders], [text.strip() for text in sweeps]
    for text in (*decoders, *sweeps):
        _refuse_former_writing(text)
        if (decoders + sweeps).count(text) > 1:
            raise InputError(f"decoder {text!r} was given twice: give it once")
    if not decoders and not sweeps:
        raise InputError("no decoders were given: such as -d mask or --sweep threshold:0.7,0.9")
    caps = distinct_budgets(budgets)
    own = [_sweep(text, caps if capped_sweeps else [FULL]) for text in sweeps]
    return [_decoder(text, caps) for text in decoders] + own


def distinct_budgets(budgets: Iterable[str | int]) -> list[str]:
    """Budgets, each once: passes (`16`) or shares (`1/4`, `25%`, `full`)."""
    found: dict[str, str] = {}
    for budget in (str(budget).strip() for budget in budgets):
        found.setdefault(repr(parse_budget(budget)), budget)  # 1, a pass, is not 1/1, all of them
    if not found:
        raise InputError("no budgets were given: such as 1/8, 1/4 or full")
    return list(found.values())


def _decoder(text: str, budgets: list[str]) -> Contender:
    if _OWN_BUDGET & parse_spec(text).options.keys():
        return Contender(text, (Variant("", _trial(text)),))
    return Contender(text, tuple(Variant("", _trial(text, budget)) for budget in budgets))


def _sweep(text: str, budgets: list[str]) -> Contender:
    by_value = expand_sweep(text)
    first = next(iter(by_value.values()))
    caps = [FULL] if _OWN_BUDGET & parse_spec(first).options.keys() else budgets
    return Contender(
        text,
        tuple(
            Variant(value, _trial(one, budget))
            for value, one in by_value.items()
            for budget in caps
        ),
    )


def _trial(text: str, budget: str = FULL) -> Trial:
    """One decoder; `budget` is its cap where it does not state its own."""
    spec = parse_spec(text)
    if spec.name not in DECODERS:
        raise unknown_name("decoder", spec.name, DECODERS, f" in {text!r}")
    options: dict[str, Any] = dict(spec.options)
    main = DECODERS.entry(spec.name).about.get("main")
    if spec.value is not None:
        if main is None:
            raise InputError(f"decoder {text!r}: {spec.name!r} takes no value behind a colon")
        options = {main: spec.value, **options}
    if not _OWN_BUDGET & options.keys():
        # said even where it is full: a checkpoint may have a default of its own
        options = {"budget": budget, **options}
    if "," in text:
        try:
            resolve(spec.name, options)
        except InputError as error:
            raise InputError(f"{error}; a list of values is a sweep: --sweep {text}") from None
    return Trial(spec.name, options)


def _refuse_former_writing(text: str) -> None:
    """Lists in braces and decoders separated by commas are written with flags of their own."""
    parts = [part.strip() for part in re.split(r",(?![^{}]*\})", text)]
    if len(parts) > 1 and all(re.split(r"[:+{]", part)[0] in DECODERS for part in parts):
        written = " ".join(_flagged(part) for part in parts)
        raise InputError(f"decoders {text!r}: give a flag for each: {written}")
    if re.search(r"[{}]", text):
        raise InputError(
            f"decoder {text!r}: a list of values stands at the end of a sweep, without braces:"
            f" {_flagged(text)}"
        )


def _flagged(text: str) -> str:
    """A decoder of the former writing as it is given now; the list in braces goes to the end."""
    if not re.search(r"[{}]", text):
        return f"-d {text}"
    option = re.search(r"\+\w+=\{[^{}]*\}", text)
    moved = text if option is None else text.replace(option[0], "") + option[0]
    return f"--sweep {re.sub(r'[{} ]', '', moved)}"

"""Budgets: caps on the forward passes of a row, as a number or as a share of its positions.

`16` is sixteen passes. `1/4`, `25%`, `1/1` and `full` are shares: of one pass per position.
"""

import re
from fractions import Fraction
from math import ceil

from xpredflow.errors import InputError

Budget = None | int | str | Fraction
FULL = "full"
_EXPECTED = "give a whole number of passes, or a share of the length: 1/4, 25% or full"


def parse_budget(budget: Budget) -> int | Fraction:
    """A number of passes, or a share in (0, 1]; None is the full budget."""
    if budget is None:
        return Fraction(1)
    if isinstance(budget, str):
        return _parse(budget.strip().lower())
    if isinstance(budget, Fraction):
        return _share(budget, str(budget))
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise InputError(f"budget is {budget!r}: {_EXPECTED}")
    return budget


def _parse(text: str) -> int | Fraction:
    if text == FULL:
        return Fraction(1)
    if re.fullmatch(r"[0-9]{1,9}", text):
        return parse_budget(int(text))
    percent = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%", text)
    ratio = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    decimal = re.fullmatch(r"0?\.[0-9]{1,9}|[0-9]{1,9}\.[0-9]{1,9}", text)
    if percent:
        return _share(Fraction(percent[1]) / 100, text)
    if ratio and int(ratio[2]):
        return _share(Fraction(int(ratio[1]), int(ratio[2])), text)
    if decimal:
        return _share(Fraction(text), text)
    raise InputError(f"budget is {text!r}: {_EXPECTED}")


def _share(share: Fraction, text: str) -> Fraction:
    if not 0 < share <= 1:
        raise InputError(f"budget is {text}: as a share it must be above 0 and at most 1")
    return share


def resolve_budget(budget: Budget, positions: int, passes: int = 1) -> int:
    """The cap on steps for a response of so many positions; as a rule a step is one pass."""
    parsed = parse_budget(budget)
    return ceil(parsed * positions) if isinstance(parsed, Fraction) else parsed // passes


def describe_budget(budget: Budget, positions: int) -> str:
    """For tables: what was asked for and what that is, such as `1/4 (16 passes)`."""
    parsed, passes = parse_budget(budget), resolve_budget(budget, positions)
    count = "1 pass" if passes == 1 else f"{passes} passes"
    if not isinstance(parsed, Fraction):
        return count
    return f"{FULL if parsed == 1 else parsed} ({count})"


def split_budget(passes: int, blocks: list[list[int]]) -> list[int]:
    """The cap in proportion to the blocks' open positions, at least one pass each."""
    if passes < len(blocks):
        raise InputError(
            f"budget is {passes} but there are {len(blocks)} blocks and each needs a pass:"
            f" give at least {len(blocks)} passes or a larger block_length"
        )
    total = sum(map(len, blocks))
    shares = [Fraction(len(block) * passes, total) for block in blocks]
    budgets = [max(1, int(share)) for share in shares]
    # rounding: passes left over go to the most short-changed block, a surplus comes off the fattest
    while sum(budgets) != passes:
        debt = [share - budget for share, budget in zip(shares, budgets, strict=True)]
        if sum(budgets) < passes:
            budgets[debt.index(max(debt))] += 1
        else:
            fat = min((d, i) for i, d in enumerate(debt) if budgets[i] > 1)[1]
            budgets[fat] -= 1
    return budgets

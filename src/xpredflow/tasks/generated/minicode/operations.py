"""The closed vocabulary of minicode: predicates, changes and results, in words and in Python."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

VARIABLE = "k"  # stands for the constant that some functions take as second argument


@dataclass(frozen=True)
class Atom:
    """One operation with its constant: its words, its Python, and what it does."""

    text: str
    code: str  # of the variable {v}
    opposite: str  # the negated predicate; empty for a change
    kind: str  # the words without the constant
    constant: Any
    apply: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Result:
    """How the processed elements become the return value."""

    text: str
    code: str  # of the list {xs}
    apply: Callable[[list], Any]
    add: str = ""  # what a loop adds to a number per element; empty: it collects a list
    counts: bool = False  # depends on how many there are, not on their values


@dataclass(frozen=True)
class Family:
    """The operations on one type of element, and the names that code about it may use."""

    name: str
    element: str
    arguments: tuple[str, ...]
    loop_names: tuple[str, ...]
    predicates: tuple[Atom, ...]
    changes: tuple[Atom, ...]
    results: tuple[Result, ...]


DIGITS = (2, 3, 4, 5, 6, 7, 8, 9, VARIABLE)
LETTERS = ("a", "e", "l", "r", "s", "t")
NONE = (None,)


def _atoms(*rows: tuple[str, str, str, tuple, Callable]) -> tuple[Atom, ...]:
    """Every operation of the rows with every one of its constants filled in."""
    return tuple(
        Atom(
            text.replace("{k}", str(k)),
            code.replace("{k}", str(k)),
            opposite.replace("{k}", str(k)),
            text,
            k,
            apply,
        )
        for text, code, opposite, constants, apply in rows
        for k in constants
    )


_LIST = Result("the list", "{xs}", list)
_SORTED = Result("the sorted list", "sorted({xs})", sorted)
_REVERSED = Result("the reversed list", "{xs}[::-1]", lambda xs: xs[::-1])
_COUNT = Result("the count", "len({xs})", len, add="1", counts=True)

NUMBERS = Family(
    name="numbers",
    element="number",
    arguments=("nums", "data", "xs"),
    loop_names=("x", "v", "n", "num"),
    predicates=_atoms(
        ("even", "{v}%2==0", "{v}%2!=0", NONE, lambda x, k: x % 2 == 0),
        ("odd", "{v}%2==1", "{v}%2!=1", NONE, lambda x, k: x % 2 == 1),
        ("positive", "{v}>0", "{v}<=0", NONE, lambda x, k: x > 0),
        ("negative", "{v}<0", "{v}>=0", NONE, lambda x, k: x < 0),
        ("above {k}", "{v}>{k}", "{v}<={k}", DIGITS, lambda x, k: x > k),
        ("below {k}", "{v}<{k}", "{v}>={k}", DIGITS, lambda x, k: x < k),
        ("other than {k}", "{v}!={k}", "{v}=={k}", DIGITS, lambda x, k: x != k),
        # 2 is missing because it is "even".
        (
            "divisible by {k}",
            "{v}%{k}==0",
            "{v}%{k}!=0",
            DIGITS[1:],
            lambda x, k: x % k == 0,
        ),
    ),
    changes=_atoms(
        ("square", "{v}*{v}", "", NONE, lambda x, k: x * x),
        ("negate", "-{v}", "", NONE, lambda x, k: -x),
        ("take the absolute value", "abs({v})", "", NONE, lambda x, k: abs(x)),
        ("add {k}", "{v}+{k}", "", DIGITS, lambda x, k: x + k),
        ("subtract {k}", "{v}-{k}", "", DIGITS, lambda x, k: x - k),
        ("multiply by {k}", "{v}*{k}", "", DIGITS, lambda x, k: x * k),
    ),
    results=(
        _LIST,
        _SORTED,
        _REVERSED,
        _COUNT,
        Result("the sum", "sum({xs})", sum, add="{v}"),
        Result(
            "the largest or 0",
            "max({xs}, default=0)",
            lambda xs: max(xs, default=0),
        ),
        Result(
            "the smallest or 0",
            "min({xs}, default=0)",
            lambda xs: min(xs, default=0),
        ),
    ),
)

WORDS = Family(
    name="words",
    element="word",
    arguments=("words", "names", "texts"),
    loop_names=("w", "s", "t", "word"),
    predicates=_atoms(
        (
            "longer than {k}",
            "len({v})>{k}",
            "len({v})<={k}",
            (2, 3, 4, 5, VARIABLE),
            lambda w, k: len(w) > k,
        ),
        (
            "shorter than {k}",
            "len({v})<{k}",
            "len({v})>={k}",
            (4, 5, 6, 7, VARIABLE),
            lambda w, k: len(w) < k,
        ),
        (
            "starting with {k}",
            "{v}[:1]=='{k}'",
            "{v}[:1]!='{k}'",
            LETTERS,
            lambda w, k: w[:1] == k,
        ),
        (
            "ending with {k}",
            "{v}[-1:]=='{k}'",
            "{v}[-1:]!='{k}'",
            LETTERS,
            lambda w, k: w[-1:] == k,
        ),
        ("containing {k}", "'{k}' in {v}", "'{k}' not in {v}", LETTERS, lambda w, k: k in w),
        ("without {k}", "'{k}' not in {v}", "'{k}' in {v}", LETTERS, lambda w, k: k not in w),
    ),
    changes=_atoms(
        ("uppercase", "{v}.upper()", "", NONE, lambda w, k: w.upper()),
        ("reverse", "{v}[::-1]", "", NONE, lambda w, k: w[::-1]),
        ("repeat", "{v}*2", "", NONE, lambda w, k: w * 2),
        ("drop the first letter", "{v}[1:]", "", NONE, lambda w, k: w[1:]),
        ("drop the last letter", "{v}[:-1]", "", NONE, lambda w, k: w[:-1]),
        ("append {k}", "{v}+'{k}'", "", LETTERS, lambda w, k: w + k),
        ("prepend {k}", "'{k}'+{v}", "", LETTERS, lambda w, k: k + w),
    ),
    results=(
        _LIST,
        _SORTED,
        _REVERSED,
        _COUNT,
        Result("the joined text", "''.join({xs})", "".join),
    ),
)

FAMILIES = {family.name: family for family in (NUMBERS, WORDS)}

"""Values in a sentence: short, whatever their size."""

import reprlib
from typing import Any

_short = reprlib.Repr()
_short.maxlevel = 4
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _short.maxfrozenset = 12
_short.maxstring = _short.maxother = 80


def short(value: Any) -> str:
    """repr(), cut to about a line."""
    try:
        text = _short.repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        text = "a very long integer"
    return text if len(text) <= 200 else text[:197] + "..."

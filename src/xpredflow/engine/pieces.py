"""Logits of a few positions at a time, for rules that need their summaries and nothing else.

Over a vocabulary of 126k the logits of a response are most of what a row takes beyond the weights.
Where there are many of them, a pass ends with hidden states, and the head is run when the signals
are read: what it gives for some positions is summarised and forgotten before the next ones.
"""

from collections.abc import Iterable

from xpredflow.engine.distribution import Head
from xpredflow.engine.rows import Row
from xpredflow.types import Decoder, Model

# Bytes of logits that are made at once: enough positions to read the head's matrix for.
PIECE_BYTES = {"cpu": 2**26}
ACCELERATOR_PIECE = 2**28


def head_for(model: Model, rows: Iterable[Row], positions: int) -> Head | None:
    """The head, if it is to be run in pieces: every rule is content, and one would not do."""
    head, table = getattr(model, "separate_head", None), model.embedding
    if head is None:
        return None
    at_once = max(1, piece_bytes(model) // (len(table) * table.element_size()))
    if positions <= at_once or not all(map(is_content, rows)):
        return None
    return Head(head, at_once)


def piece_bytes(model: Model) -> int:
    """Bytes of logits up to which they are made at once."""
    return PIECE_BYTES.get(model.embedding.device.type, ACCELERATOR_PIECE)


def is_content(row: Row) -> bool:
    """Whether the row's rules never ask for a whole distribution."""
    rule = row.rule
    if rule is None or rule.rank_ends_last or rule.cfg_scale or row.constraint is not None:
        return False
    return needs_summaries_only(rule.decoder)


def needs_summaries_only(decoder: Decoder) -> bool:
    """Whether its own class says so; a subclass may ask for more, and has to say it again."""
    return "summaries_only" in vars(type(decoder)) and bool(decoder.summaries_only)  # type: ignore[attr-defined]

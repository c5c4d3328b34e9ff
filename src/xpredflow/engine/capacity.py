"""How many rows one forward pass may hold: what fits into the memory that is free, and no more."""

from collections.abc import Iterable

import torch

from xpredflow.engine.distribution import ACCELERATOR_CHUNK
from xpredflow.engine.pieces import is_content, piece_bytes
from xpredflow.engine.request import say_once
from xpredflow.engine.rows import Row
from xpredflow.models.machine import free_bytes
from xpredflow.types import Model

MOST_ROWS = 32  # beyond it a pass takes longer in proportion, and nothing is gained
USED_SHARE = 0.9  # of the free memory; the rest is left to fragments and to others
STATES = 12  # tensors of a canvas's size in fp32 that a step holds at once
ACTIVATIONS = 24  # rows of the model's width that one layer holds for each position
KEPT_LOGITS = 4  # tensors of the logits' size that a rule with whole distributions holds


def fitting_batch(model: Model, rows: Iterable[Row]) -> int:
    """How many rows as long as the longest of these fit; said in one line on an accelerator."""
    rows = list(rows)
    free, device = free_bytes(model.embedding.device), model.embedding.device
    if free is None:
        return MOST_ROWS
    in_pieces = getattr(model, "separate_head", None) is not None and all(map(is_content, rows))
    each = max(bytes_of_row(model, row, in_pieces) for row in rows)
    room = int(USED_SHARE * free) - 3 * ACCELERATOR_CHUNK - in_pieces * piece_bytes(model)
    batch = max(1, min(MOST_ROWS, room // each))
    if device.type != "cpu":
        longest = max(len(row.ids) for row in rows)
        say_once(
            f"note: max_batch is {batch}: a row of {longest} positions takes about"
            f" {each / 1e9:.2f} GB and {free / 1e9:.1f} GB are free on {device}"
        )
    return batch


def bytes_of_row(model: Model, row: Row, in_pieces: bool = False) -> int:
    """About what a row takes beyond the weights in one pass: logits, states, activations, cache.

    Logits that are made in pieces are not the row's own.
    """
    copies = 1 + (row.rule.branches if row.rule else 0)
    positions = max(map(len, row.blocks)) * (2 if row.rule and row.rule.shadows else 1)
    whole = row.rule is not None and getattr(row.rule.decoder, "whole_distribution", False)
    is_cached = model.block_size is not None or row.cache is not None
    needed = row_bytes(
        model, positions, len(row.ids), whole=whole, copies=copies, is_cached=is_cached
    )
    table = model.embedding
    return needed - in_pieces * copies * positions * len(table) * table.element_size()


def row_bytes(
    model: Model,
    positions: int,
    length: int,
    *,
    whole: bool = False,
    copies: int = 1,
    is_cached: bool | None = None,
) -> int:
    """The same for so many positions that are read in a row of a length, in several copies."""
    vocabulary, width = model.embedding.shape
    size = model.embedding.element_size()
    logits = copies * positions * vocabulary * (KEPT_LOGITS * 4 if whole else size)
    states = STATES * copies * positions * width * 4
    activations = ACTIVATIONS * copies * length * width * size
    shape = getattr(model, "shape", None)
    cached = 0
    if is_cached is None:
        is_cached = model.block_size is not None
    if is_cached and shape is not None:
        cached = 2 * shape.layers * shape.kv_heads * shape.head_dim * length * size
    return logits + states + activations + cached


def reclaim(device: torch.device) -> None:
    """Give back what a failed pass left reserved."""
    if device.type == "cuda":
        torch.cuda.empty_cache()

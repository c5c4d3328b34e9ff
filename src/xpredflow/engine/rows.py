"""A row: one prompt on its way through the engine, block after block, until it is a Decoded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from xpredflow.engine.budget import Budget, split_budget
from xpredflow.engine.guidance import steps_of
from xpredflow.engine.prompts import Encoded, decode
from xpredflow.engine.steps import Change, Decoded, StopReason
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Decoder, Model


@dataclass(frozen=True, eq=False)
class Rule:
    """What decides over a row: its decoder, LLaDA's rules for end tokens and its guidance."""

    decoder: Decoder
    forbid_eos: bool = False
    rank_ends_last: bool = False
    cfg_scale: float = 0.0

    @property
    def shadows(self) -> bool:
        """Whether the positions' shadows are read as well."""
        return getattr(self.decoder, "shadows", False)

    @property
    def branches(self) -> int:
        """How many other canvases are read beside a row's own."""
        return getattr(self.decoder, "branches", 0)

    def is_that_of(self, other: "Rule") -> bool:
        """Rows under one rule are moved together; decoders may not know equality."""
        mine, theirs = (
            (rule.forbid_eos, rule.rank_ends_last, rule.cfg_scale) for rule in (self, other)
        )
        return self.decoder is other.decoder and mine == theirs


# Told of a pass before it is read: the logits of the row's open positions (to be changed in place),
# those positions, and the committed tokens by position.
Constraint = Callable[[Tensor, Sequence[int], dict[int, int]], None]


RULED_OUT = -3e4  # a logit that leaves no probability, and is finite in half precision too


@dataclass(eq=False)
class Row:
    """Token ids with the mask at open positions, which are decoded block by block."""

    number: int
    ids: Int[Tensor, " L"]
    blocks: list[list[int]]
    budgets: list[int]
    length: int  # positions of the text; a block-causal row is padded with masks beyond it
    infill: bool
    block: int = 0  # the block being decoded
    step: int = 0  # passes spent in it
    used: int = 0  # steps spent in all
    read: int = 0  # open positions read in them
    shadowed: int = 0  # positions read in them beside the row's own
    cached: int = 0  # leading positions whose keys and values are final and stored
    cache: str | None = None  # an approximate one for its blocks, of a bidirectional model
    frozen_for: int | None = None  # the block whose first pass filled it
    slot: int = 0
    offset: int = 0  # absolute position of the first token: blocks are counted from position 0
    progress: list[float] = field(default_factory=list)
    given: Bool[Tensor, " L"] | None = None  # the prompt, hidden from half of a guided step
    step_passes: int = 1  # forward passes of a step
    looks: int = 0  # passes that found its length, before the first step
    rule: Rule | None = None  # given when it is queued, and what follows with it
    seed: int = 0
    drawn_as: int | None = None  # the number its randomness depends on; none: its own
    stop_at_eos: bool = True
    constraint: Constraint | None = None  # what its positions may hold
    changes: tuple[Change, ...] = ()  # of its tokens after some passes, in their order
    start: Canvas | None = None  # what its block begins with; none: masks

    @property
    def randomness(self) -> int:
        """The row number that its draws start from."""
        return self.number if self.drawn_as is None else self.drawn_as

    @property
    def open(self) -> list[int]:
        """Positions of the block being decoded."""
        return self.blocks[self.block]

    @property
    def budget(self) -> int:
        """Passes that the block may take."""
        return self.budgets[self.block]

    @property
    def passes(self) -> int:
        """Forward passes spent in all."""
        return self.looks + self.used * self.step_passes

    def harden(self, tokens: list[int], progress: list[float]) -> None:
        """The block is finished: its tokens become context and never change again."""
        self.ids[self.open] = torch.tensor(tokens, dtype=self.ids.dtype)
        self.progress += progress

    def response(self) -> list[int]:
        """The tokens decoded so far, in order."""
        done = [p for block in self.blocks[: self.block + 1] for p in block]
        return self.ids[done[: len(self.progress)]].tolist()


def make_row(
    model: Model,
    number: int,
    encoded: Encoded,
    *,
    gen_length: int,
    budget: Budget,
    block_length: int | None,
    step_passes: int = 1,
) -> Row:
    """A row with its blocks and their budgets; lengths are checked against the model."""
    tokens = encoded.ids if encoded.has_gaps else encoded.ids + [-1] * gen_length
    _check_length(model, number, len(encoded.ids), len(tokens), encoded.has_gaps)
    open_, length, offset = [i for i, token in enumerate(tokens) if token == -1], len(tokens), 0
    if model.block_size is not None:
        if getattr(model, "anchored_at_response", False) and not encoded.has_gaps:
            # rotary positions are relative: the row is moved until its response begins a block
            offset = -len(encoded.ids) % model.block_size
        # the last block exists as a whole: the model never saw a shorter one
        tokens = tokens + [-1] * (-(offset + len(tokens)) % model.block_size)
    blocks = split_blocks(open_, block_length, model.block_size, offset)
    mask = model.special.mask
    return Row(
        number=number,
        ids=torch.tensor([mask if token == -1 else token for token in tokens]),
        blocks=blocks,
        budgets=split_budget(steps_of(budget, len(open_), len(blocks), step_passes), blocks),
        length=length,
        infill=encoded.has_gaps,
        offset=offset,
        given=torch.tensor(tokens) >= 0,
        step_passes=step_passes,
    )


def _check_length(model: Model, number: int, prompt: int, total: int, has_gaps: bool) -> None:
    if total <= model.max_length:
        return
    parts = f"{prompt} tokens" if has_gaps else f"{prompt} tokens + gen_length {total - prompt}"
    raise InputError(
        f"prompt {number} is too long: {parts} = {total}, but {model.name!r} takes at most"
        f" {model.max_length} positions; shorten the prompt or lower gen_length"
    )


def split_blocks(
    open_: list[int], block_length: int | None, native: int | None, offset: int = 0
) -> list[list[int]]:
    """Open positions, block by block: by absolute position in a block-causal model."""
    if native is not None:
        if block_length not in (None, native):
            raise InputError(
                f"block_length is {block_length}: this model is block-causal with blocks of"
                f" {native}; leave block_length out or set it to {native}"
            )
        return [list(group) for _, group in groupby(open_, key=lambda p: (offset + p) // native)]
    size = block_length or len(open_)
    return [open_[i : i + size] for i in range(0, len(open_), size)]


def to_decoded(model: Model, row: Row, reason: StopReason, detail: str = "") -> Decoded:
    """The row's answer, trimmed at the first end token; an infilled text is returned whole."""
    response = row.response()
    shown = response if row.infill else before_end(response, model.special.ends)
    text_ids = row.ids[: row.length].tolist() if row.infill else shown
    return Decoded(
        row=row.number,
        text=decode(model, text_ids),
        ids=shown,
        passes=row.passes,
        reason=reason,
        stop_reason=f"{reason.value}{detail}",
        progress=row.progress,
        all_ids=response,
        shadow_positions=row.shadowed * row.step_passes,
        positions_read=(row.read + row.shadowed) * row.step_passes,
    )


def finished_block(
    model: Model,
    row: Row,
    tokens: list[int],
    progress: list[float],
    bad: Bool[Tensor, " N"] | None,
    reason: StopReason,
) -> Decoded | None:
    """The row's answer if it ends here; None if it goes on with its next block.

    It ends where positions of the block are `bad`: their logits are not finite.
    """
    if bad is not None:
        where = row.open[bad.tolist().index(True)]
        detail = f": position {where} of row {row.number} in pass {row.used}, block {row.block}"
        return to_decoded(model, row, StopReason.BAD_LOGITS, detail)
    block = tokens[: len(row.open)]
    row.harden(block, progress[: len(row.open)])
    is_last = row.block == len(row.blocks) - 1
    ended = row.stop_at_eos and not row.infill and set(block) & set(model.special.ends)
    if is_last or ended:
        if ended and not is_last:
            reason = StopReason.END_OF_TEXT
        return to_decoded(model, row, reason)
    row.block, row.step = row.block + 1, 0
    return None


def before_end(ids: list[int], ends: tuple[int, ...]) -> list[int]:
    """The tokens before the first one that ends the text."""
    cut = next((i for i, token in enumerate(ids) if token in ends), len(ids))
    return ids[:cut]

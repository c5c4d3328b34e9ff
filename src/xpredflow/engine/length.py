"""DAEDAL's length adjustment (arXiv 2508.00819): a response gets the room that the model expects.

Before anything is decoded, a pass over nothing but masks says how surely the response would end. As
long as it would not, `expansion_factor` positions are added. Each look is a pass of the row.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from xpredflow.engine.prompts import Encoded
from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Decoded
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Event, Model, Signals, Space, StepInfo

if TYPE_CHECKING:
    from xpredflow.engine.request import Options


@dataclass(frozen=True)
class Room:
    """How many positions a response gets, how many looks that took, end tokens behind it."""

    positions: int
    looks: int = 0
    ends: int = 0


@dataclass(frozen=True)
class EndConfidence:
    """A decoder of one pass: progress is c where the end of the text is predicted, else 0."""

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        """Nothing is decoded, only read."""
        ends = (signals.tokens == space.special.eos) & ~canvas.frozen
        canvas = canvas.update(progress=signals.confidence * ends, tokens=signals.tokens)
        return canvas, Event(signals, torch.zeros_like(ends), torch.zeros_like(ends))

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """At once."""
        return torch.ones_like(canvas.frozen[:, 0])

    def finish(self, canvas: Canvas, space: Space) -> Int[Tensor, "B N"]:
        """What was predicted."""
        return canvas.tokens


def end_confidence(ends: list[float], checked: int) -> float:
    """The mean c of the last `checked` predicted end tokens; those that are missing count as 0."""
    return sum([c for c in ends if c > 0][-checked:]) / checked


def find_room(
    model: Model,
    prompts: dict[int, Encoded],
    options: "Options",
    look: Callable[[dict[int, int]], Iterable[Decoded]],
) -> dict[int, Room]:
    """The room of every response; `look` reads rows of these lengths by `EndConfidence`."""
    most = options.max_gen_length
    if most is None:
        return {number: Room(options.gen_length) for number in prompts}
    _check(model, prompts, options, most)
    lengths = dict.fromkeys(prompts, options.gen_length)
    looks, open_ = dict.fromkeys(prompts, 0), dict(lengths)
    while open_:
        longer: dict[int, int] = {}
        for seen in look(open_):
            looks[seen.row] += 1
            sure = end_confidence(seen.progress, options.eos_check_tokens)
            if sure < options.eos_confidence_threshold and lengths[seen.row] < most:
                lengths[seen.row] = min(lengths[seen.row] + options.expansion_factor, most)
                longer[seen.row] = lengths[seen.row]
        open_ = {number: length for number, length in longer.items() if length < most}
    behind = options.eos_check_tokens // 2
    return {n: Room(length, looks[n], min(behind, most - length)) for n, length in lengths.items()}


def _check(model: Model, prompts: dict[int, Encoded], options: "Options", most: int) -> None:
    if model.block_size is not None:
        raise InputError(
            f"max_gen_length is {most}, but {model.name!r} is block-causal and decodes block after"
            " block until its text ends: leave it out and give gen_length as the longest"
        )
    if most < options.gen_length:
        raise InputError(
            f"max_gen_length is {most}, less than gen_length {options.gen_length}, which is the"
            " length to begin with: give more"
        )
    for number, prompt in prompts.items():
        if prompt.has_gaps:
            raise InputError(
                f"prompt {number} has gaps, whose length it states itself: leave max_gen_length out"
            )
        if len(prompt.ids) + most > model.max_length:
            raise InputError(
                f"prompt {number} is too long: {len(prompt.ids)} tokens + max_gen_length {most} ="
                f" {len(prompt.ids) + most}, but {model.name!r} takes at most {model.max_length}"
                " positions; shorten the prompt or lower max_gen_length"
            )


def with_room(row: Row, room: Room, eos: int) -> Row:
    """The row with its end tokens behind the response, which only the model sees."""
    row.looks = room.looks
    row.ids = torch.cat((row.ids, torch.full((room.ends,), eos, dtype=row.ids.dtype)))
    if row.given is not None:
        row.given = torch.cat((row.given, torch.zeros(room.ends, dtype=torch.bool)))
    return row

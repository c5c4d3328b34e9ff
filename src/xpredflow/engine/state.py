"""A row after one of its passes: all that its next passes depend on, so that a row can start there.

session.submit(question, decoder="flow", start=state.changed({70: token}, space))
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from xpredflow.decoders import effective_settings
from xpredflow.decoders.discrete import OF_THE_PASS
from xpredflow.engine.group import Group, rows_of
from xpredflow.engine.rows import Row
from xpredflow.errors import InputError
from xpredflow.types import Canvas, Decoder, Model, Space


@dataclass(frozen=True)
class State:
    """Where a row stood: its tokens, the block in work as a canvas of one row, and its counts.

    `ids` hold the mask wherever a block is not finished; `progress` is that of finished blocks.
    """

    decoder: str
    ids: Int[Tensor, " L"]
    blocks: list[list[int]]
    block: int
    step: int
    used: int
    progress: list[float]
    canvas: Canvas

    @classmethod
    def of(cls, group: Group, i: int) -> "State":
        """After the newest pass of a group, also of a row that this pass ended."""
        row, first = group.rows[i], int(group.positions[i, 0])
        block = next(b for b, places in enumerate(row.blocks) if places[0] == first)
        ids = row.ids.clone()
        ids[[p for places in row.blocks[block:] for p in places]] = group.space.special.mask
        return cls(
            decoder=_name(group.rule.decoder),
            ids=ids,
            blocks=row.blocks,
            block=block,
            step=int(group.step[i]),
            used=row.used,
            progress=row.progress[: sum(map(len, row.blocks[:block]))],
            canvas=_cut(group.reached, i, len(row.blocks[block])),
        )

    @property
    def open(self) -> list[int]:
        """The positions of the block in work: those that can be changed."""
        return self.blocks[self.block]

    def changed(self, tokens: Mapping[int, int | None], space: Space) -> "State":
        """Other tokens at some positions, committed; without a token a position is open again.

        What a decoder remembers of these positions goes with what they held.
        """
        canvas = self.canvas
        state, progress, held = canvas.state.clone(), canvas.progress.clone(), canvas.tokens.clone()
        memory = {name: tensor.clone() for name, tensor in canvas.memory.items()}
        for position, token in tokens.items():
            if position not in self.open:
                raise InputError(
                    f"position {position} is not decoded in pass {self.used}: its block has the"
                    f" positions {self.open[0]} to {self.open[-1]}"
                )
            place = self.open.index(position)
            state[0, place] = space.mask if token is None else space.embed(torch.tensor(token))
            progress[0, place] = float(token is not None)
            held[0, place] = space.special.mask if token is None else token
            for name, tensor in memory.items():
                if tensor.ndim > 1 and name not in OF_THE_PASS:
                    tensor[0, place] = 0
        changed = canvas.update(state=state, progress=progress, tokens=held, memory=memory)
        return replace(self, canvas=changed)


def begin_at(row: Row, state: State, decoder: Decoder, model: Model) -> Row:
    """The row from a recorded state on; both must be of one prompt, decoder and layout."""
    name = _name(decoder)
    if not getattr(decoder, "resumes", True):
        raise InputError(f"decoder {name!r} cannot start from a recorded state: choose another")
    if name != state.decoder:
        raise InputError(f"the state is of decoder {state.decoder!r}, not of {name!r}: give that")
    given = torch.ones(len(row.ids), dtype=torch.bool)
    given[[p for places in row.blocks for p in places]] = False
    if row.blocks != state.blocks or not torch.equal(row.ids[given], state.ids[given]):
        raise InputError("the state is of another prompt or length: give those it was recorded of")
    if state.canvas.state.shape[-1] != model.embedding.shape[-1]:
        raise InputError(f"the state is of another model than {model.name!r}: load that one")
    if state.step >= row.budgets[state.block]:
        raise InputError(
            f"the budget is used up after pass {state.used}: start from an earlier one, or give a"
            " larger budget"
        )
    return replace(
        row,
        ids=state.ids.clone(),
        block=state.block,
        step=state.step,
        used=state.used,
        progress=list(state.progress),
        start=state.canvas,
        cached=0,
        frozen_for=None,  # an approximate cache is filled anew
        slot=0,
    )


def _cut(canvas: Canvas, i: int, width: int) -> Canvas:
    """One row of a canvas without its padding."""
    one = rows_of(canvas, torch.tensor([i]).to(canvas.tokens.device))

    def cut(tensor: Tensor) -> Tensor:
        return tensor[:, :width].clone() if tensor.ndim > 1 else tensor.clone()

    return Canvas(
        state=cut(one.state),
        progress=cut(one.progress),
        tokens=cut(one.tokens),
        frozen=cut(one.frozen),
        memory={name: cut(tensor) for name, tensor in one.memory.items()},
    )


def _name(decoder: Decoder) -> str:
    return str(effective_settings(decoder)["decoder"])

"""States that the flow itself visits, as inputs of alignment: not the paper's, and off by default.

Alignment shows tokens and masks, but the flow reads states on the way between the two, and some of
them lead to a wrong token. Here all of a response is masked, as decoding begins, and the model's
own predictions move it for a few passes, each position by a = c^n of what is left of its way; what
it reads then is held against the answer. An answer that the flow itself would give says where
such a state leads; any other right answer may contradict it (docs/log.md).

With a block length, half of these rows are as decoding in blocks meets them: the answer stands
before a block, the block moves, and masks stand behind it.

`predictions` are the inputs of DMax's on-policy uniform training (arXiv 2604.08302) instead: three
quarters of a response are masked, and one pass replaces them by whatever the model predicts.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.training.align.readout import Top
from xpredflow.training.common.masking import MaskedBatch

PASSES = 6  # at most
EXPONENTS = (1.0, 2.0, 4.0, 8.0)  # from hasty to careful
REPLACED = 0.75  # of a response, as DMax trains
Kind = Literal["flow", "predictions"]

Predict = Callable[[Float[Tensor, "B L E"]], Top]


@dataclass(frozen=True)
class OnPolicyStates:
    """Which rows the flow moves, for how many passes, and how carefully each of them.

    They begin with `masked` of their positions masked; `seed` says which. At the exponent 0 a
    single pass goes all the way to the predicted tokens. `place` says which of a response's blocks
    of `block` positions moves, as a share of them; below 0 the whole response does.
    """

    rows: Bool[Tensor, " B"]
    exponent: Float[Tensor, " B"]
    passes: int
    masked: float = 1.0
    seed: int = 0
    block: int = 0
    place: Float[Tensor, " B"] | None = None

    @classmethod
    def drawn(
        cls,
        rows: int,
        share: float,
        generator: torch.Generator,
        kind: Kind = "flow",
        block: int = 0,
    ) -> "OnPolicyStates":
        """About this share of the rows; as many passes for all, so that processes keep in step."""
        chosen = torch.rand(rows, generator=generator) < share
        if kind == "predictions":
            seed = int(torch.randint(2**31, (), generator=generator))
            return cls(chosen, torch.zeros(rows), 1, REPLACED, seed)
        which = torch.randint(len(EXPONENTS), (rows,), generator=generator)
        passes = int(torch.randint(1, PASSES + 1, (), generator=generator))
        place = 2 * torch.rand(rows, generator=generator) - 1 if block else None
        exponent = torch.tensor(EXPONENTS)[which]
        return cls(chosen, exponent, passes, block=block, place=place)

    def part(self, chosen: slice, device: torch.device) -> "OnPolicyStates":
        """Those of some rows, on a device."""
        place = None if self.place is None else self.place[chosen].to(device)
        rows, exponent = self.rows[chosen].to(device), self.exponent[chosen].to(device)
        return replace(self, rows=rows, exponent=exponent, place=place)

    def started(self, noisy: MaskedBatch) -> MaskedBatch:
        """The same with as much masked as these rows begin with: everything, or a part."""
        begun = noisy.candidates & (self._blocks_behind(noisy.candidates) >= 0)
        if self.masked < 1:
            draw = torch.Generator().manual_seed(self.seed)
            begun = begun & (torch.rand(begun.shape, generator=draw) < self.masked)
        return replace(noisy, masked=torch.where(self.rows.unsqueeze(-1), begun, noisy.masked))

    def _blocks_behind(self, candidates: Bool[Tensor, "B L"]) -> Int[Tensor, "B L"]:
        """How many blocks a position is behind the one that moves; 0 if the whole response does."""
        if self.place is None:
            return torch.zeros_like(candidates, dtype=torch.long)
        number = (candidates.cumsum(-1) - 1).clamp(min=0) // self.block
        blocks = number[:, -1:] + 1
        moving = (self.place.unsqueeze(-1) * blocks).long().clamp(min=0)
        behind = number - moving
        return torch.where(self.place.unsqueeze(-1) < 0, torch.zeros_like(behind), behind)

    def own(self) -> Int[Tensor, " R"]:
        """The numbers of these rows; never none: every process must pass as often."""
        return self.rows.nonzero().squeeze(-1) if self.rows.any() else torch.arange(1)

    def only(self, rows: Int[Tensor, " R"]) -> "OnPolicyStates":
        """Those of the rows with these numbers."""
        place = None if self.place is None else self.place[rows]
        return replace(self, rows=self.rows[rows], exponent=self.exponent[rows], place=place)

    @torch.no_grad()
    def states(
        self,
        start: Float[Tensor, "B L E"],
        noisy: MaskedBatch,
        table: Float[Tensor, "V E"],
        predict: Predict,
    ) -> Float[Tensor, "B L E"]:
        """The inputs after the passes; `predict` tells the likeliest token of every candidate."""
        row, column = noisy.candidates.nonzero(as_tuple=True)
        moving = noisy.masked & self.rows.unsqueeze(-1)
        moves = (moving & (self._blocks_behind(noisy.candidates) == 0))[row, column]
        row, column = row[moves], column[moves]
        state, exponent = start.clone(), self.exponent[row]
        for _ in range(self.passes):
            tokens, log_prob = (of[moves, 0] for of in predict(state))
            fraction = (log_prob * exponent).exp().unsqueeze(-1).to(state)
            here = state[row, column]
            state[row, column] = here + fraction * (F.embedding(tokens, table) - here)
        return state

"""States that the flow itself visits, as inputs of alignment: not the paper's, and off by default.

Alignment shows tokens and masks, but the flow reads states on the way between the two, and some of
them lead to a wrong token. Here all of a response is masked, as decoding begins, and the model's
own predictions move it for a few passes, each position by a = c^n of what is left of its way; what
it reads then is held against the answer. An answer that the flow itself would give says where
such a state leads; any other right answer may contradict it (docs/log.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.training.align.readout import Top
from xpredflow.training.common.masking import MaskedBatch

PASSES = 6  # at most
EXPONENTS = (1.0, 2.0, 4.0, 8.0)  # from hasty to careful

Predict = Callable[[Float[Tensor, "B L E"]], Top]


@dataclass(frozen=True)
class OnPolicyStates:
    """Which rows the flow moves, for how many passes, and how carefully each of them."""

    rows: Bool[Tensor, " B"]
    exponent: Float[Tensor, " B"]
    passes: int

    @classmethod
    def drawn(cls, rows: int, share: float, generator: torch.Generator) -> "OnPolicyStates":
        """About this share of the rows; as many passes for all, so that processes keep in step."""
        chosen = torch.rand(rows, generator=generator) < share
        which = torch.randint(len(EXPONENTS), (rows,), generator=generator)
        passes = int(torch.randint(1, PASSES + 1, (), generator=generator))
        return cls(chosen, torch.tensor(EXPONENTS)[which], passes)

    def part(self, chosen: slice, device: torch.device) -> "OnPolicyStates":
        """Those of some rows, on a device."""
        return OnPolicyStates(
            self.rows[chosen].to(device), self.exponent[chosen].to(device), self.passes
        )

    def started(self, noisy: MaskedBatch) -> MaskedBatch:
        """The same with nothing left unmasked in the rows that on_policy."""
        return replace(noisy, masked=noisy.masked | self.rows.unsqueeze(-1) & noisy.candidates)

    def own(self) -> Int[Tensor, " R"]:
        """The numbers of these rows; never none: every process must pass as often."""
        return self.rows.nonzero().squeeze(-1) if self.rows.any() else torch.arange(1)

    def only(self, rows: Int[Tensor, " R"]) -> "OnPolicyStates":
        """Those of the rows with these numbers."""
        return OnPolicyStates(self.rows[rows], self.exponent[rows], self.passes)

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
        moves = (noisy.masked & self.rows.unsqueeze(-1))[row, column]
        row, column = row[moves], column[moves]
        state, exponent = start.clone(), self.exponent[row]
        for _ in range(self.passes):
            tokens, log_prob = (of[moves, 0] for of in predict(state))
            fraction = (log_prob * exponent).exp().unsqueeze(-1).to(state)
            here = state[row, column]
            state[row, column] = here + fraction * (F.embedding(tokens, table) - here)
        return state

"""The alignment objective: every response position must predict its own clean embedding."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.align.on_policy import Walk
from xpredflow.training.align.readout import (
    CHUNK,
    NO_WISHES,
    Readout,
    Tables,
    Top,
    Wishes,
    read_out,
)
from xpredflow.training.common.masking import Corruption


class XPrediction(nn.Module):
    """A model with its objective as forward pass, which is what sharding wants to see."""

    def __init__(
        self,
        model: MaskedDiffusionModel,
        chunk: int = CHUNK,
        clean_entropy: float = 0.0,
        keep_reference: float = 0.0,
    ) -> None:
        """`clean_entropy` weighs the cross-entropy where no mask is shown, beside the error.

        `keep_reference` weighs the divergence from what the reference predicted at masks.
        """
        super().__init__()
        self.model, self.chunk = model, chunk
        self.clean_entropy, self.keep_reference = clean_entropy, keep_reference

    def forward(
        self, noisy: Corruption, walk: Walk | None = None, keep: Top | None = None, top: int = 0
    ) -> Readout:
        """What is read at the candidates, masked or not, row by row.

        Rows of the `walk` show states between mask and token where they are masked. `keep` is what
        the reference predicted at the same candidates, `top` how many tokens of it are to be told.
        """
        model, shown = self.model, noisy.masked  # where a mask stands
        inputs = F.embedding(noisy.shown(model.special.mask), model.embedding)
        if walk is not None:
            shown = shown & ~walk.rows.unsqueeze(-1)
            inputs = self._walked(inputs, noisy, walk)
        shown = shown[noisy.candidates]
        wishes = Wishes(
            entropy_weight=self.clean_entropy * (~shown).float() if self.clean_entropy else None,
            keep_weight=self.keep_reference * shown.float() if keep is not None else None,
            keep=keep,
        )
        return self._read(inputs, noisy, wishes, top)

    def _walked(
        self, inputs: Float[Tensor, "B L E"], noisy: Corruption, walk: Walk
    ) -> Float[Tensor, "B L E"]:
        """The inputs with the states of the rows that walk; no others are passed through."""
        rows = walk.own()
        part = noisy.rows(rows)
        length = part.ids.shape[1]
        moved = walk.only(rows).states(
            inputs[rows, :length],
            part,
            self.model.embedding,
            lambda x: self._read(x, part, NO_WISHES, 1).top,
        )
        inputs[rows, :length] = moved
        return inputs

    def _read(
        self, inputs: Float[Tensor, "B L E"], noisy: Corruption, wishes: Wishes, top: int
    ) -> Readout:
        model, (_, _, head) = self.model, self.model.trunk()
        assert isinstance(head, nn.Linear)
        hidden = model.hidden(inputs, noisy.positions, noisy.wanted)
        tables = Tables(head.weight, model.embedding, model.special.mask)
        at = noisy.candidates[:, noisy.first :]
        return read_out(hidden[at], noisy.ids[noisy.candidates], tables, self.chunk, wishes, top)

"""The alignment objective: every response position must predict its own clean embedding."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.align.config import CHUNK
from xpredflow.training.align.on_policy import OnPolicyStates
from xpredflow.training.align.readout import (
    NO_EXTRAS,
    ExtraTerms,
    Readout,
    Tables,
    Top,
    read_out,
)
from xpredflow.training.common.masking import MaskedBatch


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
        self,
        noisy: MaskedBatch,
        on_policy: OnPolicyStates | None = None,
        keep: Top | None = None,
        top: int = 0,
    ) -> Readout:
        """What is read at the candidates, masked or not, row by row.

        Rows of `on_policy` show states between mask and token where they are masked. `keep` is
        what the reference predicted at the same candidates, `top` how many tokens to tell.
        """
        model, shown = self.model, noisy.masked  # where a mask stands
        inputs = F.embedding(noisy.shown(model.special.mask), model.embedding)
        if on_policy is not None:
            shown = shown & ~on_policy.rows.unsqueeze(-1)
            inputs = self._on_policy(inputs, noisy, on_policy)
        shown = shown[noisy.candidates]
        extras = ExtraTerms(
            entropy_weight=self.clean_entropy * (~shown).float() if self.clean_entropy else None,
            keep_weight=self.keep_reference * shown.float() if keep is not None else None,
            keep=keep,
        )
        return self._read(inputs, noisy, extras, top)

    def _on_policy(
        self, inputs: Float[Tensor, "B L E"], noisy: MaskedBatch, on_policy: OnPolicyStates
    ) -> Float[Tensor, "B L E"]:
        """The inputs with the states of the rows that on_policy; no others are passed through."""
        rows = on_policy.own()
        part = noisy.rows(rows)
        length = part.ids.shape[1]
        moved = on_policy.only(rows).states(
            inputs[rows, :length],
            part,
            self.model.embedding,
            lambda x: self._read(x, part, NO_EXTRAS, 1).top,
        )
        inputs[rows, :length] = moved
        return inputs

    def _read(
        self, inputs: Float[Tensor, "B L E"], noisy: MaskedBatch, extras: ExtraTerms, top: int
    ) -> Readout:
        model, (_, _, head) = self.model, self.model.trunk()
        assert isinstance(head.weight, Tensor)  # of its own, or the embeddings of a tied model
        hidden = model.hidden(inputs, noisy.positions, noisy.columns)
        tables = Tables(head.weight, model.embedding, model.special.mask)
        at = noisy.candidates[:, noisy.first :]
        return read_out(hidden[at], noisy.ids[noisy.candidates], tables, self.chunk, extras, top)

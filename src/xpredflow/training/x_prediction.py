"""The alignment objective: every response position must predict its own clean embedding."""

import torch.nn.functional as F
from torch import nn

from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.corruption import Corruption
from xpredflow.training.readout import CHUNK, Readout, Tables, read_out


class XPrediction(nn.Module):
    """A model with its objective as forward pass, which is what sharding wants to see."""

    def __init__(
        self, model: MaskedDiffusionModel, chunk: int = CHUNK, clean_entropy: float = 0.0
    ) -> None:
        """`clean_entropy` weighs the cross-entropy at unmasked positions, beside the error."""
        super().__init__()
        self.model, self.chunk, self.clean_entropy = model, chunk, clean_entropy

    def forward(self, noisy: Corruption) -> Readout:
        """What is read at the candidates, masked or not, row by row."""
        model, (_, _, head) = self.model, self.model.trunk()
        assert isinstance(head, nn.Linear)
        inputs = F.embedding(noisy.shown(model.special.mask), model.embedding)
        hidden = model.hidden(inputs, noisy.positions, noisy.wanted)
        at = noisy.candidates[:, noisy.first :]
        tables = Tables(head.weight, model.embedding, model.special.mask)
        target = noisy.ids[:, noisy.first :][at]
        weight = None
        if self.clean_entropy:
            weight = self.clean_entropy * (~noisy.masked[:, noisy.first :][at]).float()
        return read_out(hidden[at], target, tables, self.chunk, weight)

"""The alignment objective: every response position must predict its own clean embedding."""

import torch.nn.functional as F
from torch import nn

from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.corruption import Corruption
from xpredflow.training.readout import CHUNK, Readout, Tables, read_out


class XPrediction(nn.Module):
    """A model with its objective as forward pass, which is what sharding wants to see."""

    def __init__(self, model: MaskedDiffusionModel, chunk: int = CHUNK) -> None:
        super().__init__()
        self.model, self.chunk = model, chunk

    def forward(self, noisy: Corruption) -> Readout:
        """What is read at the candidates, masked or not, row by row."""
        model, (_, _, head) = self.model, self.model.trunk()
        assert isinstance(head, nn.Linear)
        inputs = F.embedding(noisy.shown(model.special.mask), model.embedding)
        hidden = model.hidden(inputs, noisy.positions, noisy.wanted)
        at = noisy.candidates[:, noisy.first :]
        tables = Tables(head.weight, model.embedding, model.special.mask)
        return read_out(hidden[at], noisy.ids[:, noisy.first :][at], tables, self.chunk)

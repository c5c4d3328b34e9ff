"""The masked diffusion objective (Eq. 1) on a batch of texts."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.batches import Corruption, TextBatch


def masked_cross_entropy(
    model: MaskedDiffusionModel, batch: TextBatch, corruption: Corruption
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Eq. 1 per response position, and the share of masked tokens that were guessed right."""
    noisy = batch.ids.masked_fill(corruption.masked, model.special.mask)
    rows, length = noisy.shape
    positions = torch.arange(length, device=noisy.device).expand(rows, length)
    first = int(batch.response.any(0).nonzero()[0])  # the head is not run on the common prompt
    wanted = positions[:, first:]
    logits = model.logits(F.embedding(noisy, model.embedding), positions, wanted)
    masked, target = corruption.masked[:, first:], batch.ids[:, first:]
    loss = F.cross_entropy(logits[masked].float(), target[masked], reduction="none")
    weight = corruption.weight.unsqueeze(-1).expand_as(masked)[masked]
    right = (logits.detach()[masked].argmax(-1) == target[masked]).float().mean()
    return (loss * weight).sum() / batch.response.sum(), right

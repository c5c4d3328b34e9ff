"""The masked diffusion objective (Eq. 1) on a corrupted batch."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.corruption import Corruption


def masked_cross_entropy(
    model: MaskedDiffusionModel, noisy: Corruption
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Eq. 1 per candidate position, and the share of masked tokens that were guessed right."""
    inputs = F.embedding(noisy.shown(model.special.mask), model.embedding)
    logits = model.logits(inputs, noisy.positions, noisy.wanted)
    masked, target = noisy.masked[:, noisy.first :], noisy.ids[:, noisy.first :]
    logits, target = logits[masked].float(), target[masked]
    loss = F.cross_entropy(logits, target, reduction="none")
    weight = noisy.weight.unsqueeze(-1).expand_as(masked)[masked]
    right = (logits.detach().argmax(-1) == target).float().mean()
    return (loss * weight).sum() / noisy.candidates.sum(), right

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
    shown = noisy.ids.masked_fill(noisy.masked, model.special.mask)
    first = int(noisy.candidates.any(0).nonzero()[0])  # the head is not run on the common prompt
    columns = noisy.ids.shape[1]
    wanted = noisy.positions.new_tensor(range(first, columns)).expand(len(shown), -1)
    logits = model.logits(F.embedding(shown, model.embedding), noisy.positions, wanted)
    masked, target = noisy.masked[:, first:], noisy.ids[:, first:]
    logits, target = logits[masked].float(), target[masked]
    loss = F.cross_entropy(logits, target, reduction="none")
    weight = noisy.weight.unsqueeze(-1).expand_as(masked)[masked]
    right = (logits.detach().argmax(-1) == target).float().mean()
    return (loss * weight).sum() / noisy.candidates.sum(), right

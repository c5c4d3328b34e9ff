"""The masked diffusion objective (Eq. 1) on a masked batch."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.common.masking import MaskedBatch


def masked_inputs(model: MaskedDiffusionModel, noisy: MaskedBatch) -> Float[Tensor, "B L E"]:
    """What the model reads: the text's embeddings, the mask's where it is masked."""
    return F.embedding(noisy.shown(model.special.mask), model.embedding)


def masked_cross_entropy(
    model: MaskedDiffusionModel, noisy: MaskedBatch, inputs: Float[Tensor, "B L E"] | None = None
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Eq. 1 per candidate position, and the share of masked tokens that were guessed right."""
    inputs = masked_inputs(model, noisy) if inputs is None else inputs
    logits = model.logits(inputs, noisy.positions, noisy.columns)
    asked, target = noisy.asked[:, noisy.first :], noisy.ids[:, noisy.first :]
    logits, target = logits[asked].float(), target[asked]
    loss = F.cross_entropy(logits, target, reduction="none")
    weight = noisy.weight.unsqueeze(-1).expand_as(asked)[asked]
    right = (logits.detach().argmax(-1) == target).float().mean()
    return (loss * weight).sum() / noisy.candidates.sum(), right

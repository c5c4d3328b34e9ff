"""What one update of pretraining asks: which tokens are masked, and how the answer is judged."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.common.masking import (
    MaskedBatch,
    TextBatch,
    draw_masks,
    masked_cross_entropy,
)
from xpredflow.training.pretrain.block_streams import block_cross_entropy, mask_blocks
from xpredflow.training.pretrain.config import PretrainConfig

# the loss of a masked batch, and the share of its masked tokens that are predicted
Loss = Callable[[MaskedDiffusionModel, MaskedBatch], tuple[Float[Tensor, ""], Float[Tensor, ""]]]


@dataclass(frozen=True)
class Lesson:
    """The masks of a whole batch, and the loss for this process's rows of them."""

    noisy: MaskedBatch
    loss: Loss


def check_blocks(config: PretrainConfig, model: MaskedDiffusionModel) -> None:
    """Refuse `block_share` where blocks cannot be learned in two streams."""
    if config.block_share and (model.block_size or model.shape.shift):
        raise InputError(
            f"block_share is {config.block_share}, which is for models that see the whole row"
            f" and predict a position where it stands; {model.name!r} does not:"
            " leave it out"
        )


def draw_lesson(
    config: PretrainConfig, model: MaskedDiffusionModel, batch: TextBatch, step: int, rows: slice
) -> Lesson:
    """The lesson of an update: the same for the same seed and step, in every process."""
    draw = torch.Generator().manual_seed(config.seed * 1_000_003 + step)
    whole = step >= config.whole_from
    in_blocks = not whole and config.block_share > 0
    if in_blocks and torch.rand((), generator=draw) < config.block_share:
        noisy, blocks = mask_blocks(batch, draw)
        own = blocks[rows].to(model.embedding.device)
        return Lesson(noisy, partial(block_cross_entropy, blocks=own))
    noisy = draw_masks(
        batch,
        model.block_size,
        model.special.eos,
        draw,
        cut_share=config.cut_share,
        tail_share=config.tail_share if whole else 0.0,
    )
    return Lesson(noisy, masked_cross_entropy)

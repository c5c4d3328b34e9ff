"""A fresh model with random weights, for pretraining and for tests."""

import re
from typing import Any

import torch

from xpredflow.models.base import MaskedDiffusionModel, on_meta
from xpredflow.models.families import family_of
from xpredflow.models.loader import as_device, as_dtype, assign

STD = 0.02


def build(
    config: dict[str, Any],
    seed: int = 0,
    *,
    dtype: torch.dtype | str = "float32",
    device: torch.device | str | None = "cpu",
    tokenizer: Any = None,
) -> MaskedDiffusionModel:
    """The model that config.json describes; the same seed gives the same weights everywhere."""
    kind, target = as_dtype(dtype), as_device(device)
    model = on_meta(family_of(config), config)
    generator = torch.Generator().manual_seed(seed)
    # 1/sqrt of the number of branches that are summed into the residual stream: its variance
    # then does not grow with depth.
    damped = STD / (2 * model.shape.layers) ** 0.5
    for name, shell in model.state_dict().items():
        std = damped if re.search(model.residual, name) else STD
        if shell.ndim == 1:
            values = torch.full(shell.shape, 0.0 if name.endswith("bias") else 1.0)
        else:
            values = torch.empty(shell.shape).normal_(0.0, std, generator=generator)
        assign(model, name, values.to(dtype=kind, device=target))
    model.attach(tokenizer)
    return model

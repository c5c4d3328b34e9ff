"""AdamW for alignment, with its moments in fp32 or, by torchao, in 8 bits."""

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.processes import Share
from xpredflow.training.align.config import AlignConfig

# Embeddings are small, so the loss and its gradients are: they must not drown in eps.
_ADAM: dict[str, Any] = {"betas": (0.9, 0.98), "eps": 1e-12}


def check_moments(config: AlignConfig, share: Share) -> None:
    """Refuse moments that cannot be had here, before anything is read."""
    if config.moments == "float32":
        return
    if share.world > 1:
        raise InputError(
            f"moments is {config.moments!r} but {share.world} processes share them out: leave it"
            " at 'float32', or train in one process"
        )
    if find_spec("torchao") is None:
        raise InputError(
            f"moments is {config.moments!r} but torchao is not installed: pip install"
            " 'xpredflow[lowbit]'"
        )
    import torchao.optim  # noqa: F401  (a state that holds them can be read from now on)


def adamw(
    parameters: Iterable[torch.nn.Parameter], config: AlignConfig, device: torch.device
) -> torch.optim.Optimizer:
    """The optimiser that the settings ask for."""
    options = {**_ADAM, "lr": config.lr, "weight_decay": config.weight_decay}
    if config.moments == "float32":
        # the others make a copy of all parameters in every step
        fused = True if device.type == "cuda" else None
        return torch.optim.AdamW(parameters, fused=fused, **options)
    if device.type not in ("cpu", "cuda", "xpu"):
        raise InputError(
            f"moments is {config.moments!r}, which torchao cannot do on {device.type!r}: leave it"
            " at 'float32'"
        )
    from torchao.optim import AdamW8bit

    return AdamW8bit(list(parameters), **options)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of the next step."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):  # as a compiled step wants it
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate

"""The mean of several checkpoints that were trained further from the same one."""

import torch

from xpredflow.errors import InputError
from xpredflow.models.base import MaskedDiffusionModel


@torch.no_grad()
def average(models: dict[str, MaskedDiffusionModel]) -> MaskedDiffusionModel:
    """A model whose weights are the mean of all; `models` are named for what errors say.

    All must have one embedding table: what is moved in another coordinate system has no mean.
    """
    if len(models) < 2:
        raise InputError(f"{len(models)} model has no average: give at least two")
    (first, mean), *others = models.items()
    shapes = {name: p.shape for name, p in mean.named_parameters()}
    for name, model in others:
        if {n: p.shape for n, p in model.named_parameters()} != shapes:
            raise InputError(f"{name!r} has other parameters than {first!r}: give models alike")
        if not torch.equal(model.embedding, mean.embedding.to(model.embedding)):
            raise InputError(
                f"{name!r} has other embeddings than {first!r}: give models that were aligned"
                " from the same checkpoint, which leaves embeddings as they are"
            )
    parts = [dict(model.named_parameters()) for model in models.values()]
    for name, parameter in mean.named_parameters():
        parameter.copy_(torch.stack([part[name].double() for part in parts]).mean(0))
    return mean

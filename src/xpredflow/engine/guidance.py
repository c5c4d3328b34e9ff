"""Classifier-free guidance as LLaDA does it: what the prompt adds to a prediction counts more.

Every step is two forward passes, one with the prompt and one with masks in its place; both count,
in `Decoded.passes` and where a budget is a number of passes. A budget that is a share is one of
steps: `full` is a step per position, as in LLaDA's code, and so two passes.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.budget import Budget, resolve_budget
from xpredflow.errors import InputError
from xpredflow.types import Model

PASSES = 2  # of a guided step


def guided_logits(
    model: Model,
    inputs: Float[Tensor, "G L E"],
    given: Bool[Tensor, "G L"],
    positions: Int[Tensor, "G L"],
    columns: Int[Tensor, "G M"],
    scale: float,
) -> Float[Tensor, "G M V"]:
    """u + (scale + 1)·(z − u): z are the logits with what is `given`, u those without it."""
    mask = model.embedding[model.special.mask].to(inputs)
    blind = torch.where(given.unsqueeze(-1), mask, inputs)
    with_prompt = model.logits(inputs, positions, columns)
    return torch.lerp(model.logits(blind, positions, columns), with_prompt, scale + 1.0)


def steps_of(budget: Budget, positions: int, blocks: int, passes: int) -> int:
    """The cap on the steps of a row in which each of them takes so many passes."""
    steps = resolve_budget(budget, positions, passes)
    if passes > 1 and steps < blocks:
        raise InputError(
            f"budget is {budget}: with cfg_scale a step costs {passes} passes, so that"
            f" {blocks} block(s) need {passes * blocks} at least"
        )
    return steps

"""Mixture of experts as in Qwen3-MoE: a softmax over all experts, of which the best are kept.

Dimension names: T tokens, X experts, A experts chosen per token, E width.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from xpredflow.models.experts import Experts


@dataclass(frozen=True)
class SoftmaxRouting:
    """How many experts of which width, how many are kept, and in which layers they stand."""

    experts: int
    chosen: int
    inner: int
    normalise: bool  # the kept weights sum to 1
    every: int = 1
    dense_layers: tuple[int, ...] = ()

    def at(self, layer: int) -> bool:
        """Whether a layer has experts, or one MLP for all."""
        return layer not in self.dense_layers and (layer + 1) % self.every == 0


class SoftmaxRouter(nn.Module):
    """Scores in fp32, whatever the weights are stored as."""

    def __init__(self, width: int, routing: SoftmaxRouting) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(routing.experts, width))
        self.routing = routing

    def forward(self, x: Float[Tensor, "T E"]) -> tuple[Int[Tensor, "T A"], Float[Tensor, "T A"]]:
        """The chosen experts of each token and their weights."""
        with torch.autocast(x.device.type, enabled=False):  # it would multiply in bf16
            scores = F.linear(x.float(), self.weight.float()).softmax(-1)
        weights, chosen = scores.topk(self.routing.chosen, dim=-1)
        if self.routing.normalise:
            weights = weights / weights.sum(-1, keepdim=True)
        return chosen, weights


class SoftmaxMixture(nn.Module):
    """Routed experts alone, without a shared one."""

    def __init__(self, width: int, routing: SoftmaxRouting) -> None:
        super().__init__()
        self.gate = SoftmaxRouter(width, routing)
        self.experts = Experts(width, routing.inner, routing.experts)

    def forward(self, x: Float[Tensor, "B L E"]) -> Float[Tensor, "B L E"]:
        tokens = x.flatten(0, 1)
        return self.experts(tokens, *self.gate(tokens)).view_as(x)

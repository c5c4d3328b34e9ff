"""Mixture of experts as in LLaDA2: group-limited sigmoid router, stacked experts, shared expert.

Dimension names: T tokens, X experts, A experts chosen per token, P rows sorted by expert (T times
A), E width, I and O the widths in and out of an expert's matrix.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from xpredflow.models.layers import GatedMLP


@dataclass(frozen=True)
class Routing:
    """How many experts there are, and how they are chosen and weighed."""

    experts: int
    chosen: int
    groups: int
    kept_groups: int
    scale: float


class Router(nn.Module):
    """Scores in fp32. The bias decides who is chosen and never what the chosen weigh."""

    expert_bias: Tensor

    def __init__(self, width: int, routing: Routing) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(routing.experts, width))
        self.register_buffer("expert_bias", torch.zeros(routing.experts))
        self.routing = routing

    def forward(self, x: Float[Tensor, "T E"]) -> tuple[Int[Tensor, "T A"], Float[Tensor, "T A"]]:
        """The chosen experts of each token and their weights."""
        scores = torch.sigmoid(F.linear(x.float(), self.weight.float()))
        chosen = self.choose(scores.detach() + self.expert_bias.float())
        weights = scores.gather(1, chosen)
        if self.routing.chosen > 1:  # a single expert keeps its own score, as upstream has it
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return chosen, weights * self.routing.scale

    def choose(self, ranking: Float[Tensor, "T X"]) -> Int[Tensor, "T A"]:
        """The best experts of the best groups; a group counts by the sum of its best two."""
        grouped = ranking.unflatten(-1, (self.routing.groups, -1))
        strength = grouped.topk(2, dim=-1).values.sum(-1)
        kept = strength.topk(self.routing.kept_groups, dim=-1, sorted=False).indices
        dropped = torch.ones_like(strength, dtype=torch.bool).scatter(1, kept, False)
        allowed = grouped.masked_fill(dropped.unsqueeze(-1), float("-inf")).flatten(1)
        return allowed.topk(self.routing.chosen, dim=-1, sorted=False).indices


class Experts(nn.Module):
    """All experts of a layer, stacked so that one call multiplies every token by its expert."""

    def __init__(self, width: int, inner: int, experts: int) -> None:
        super().__init__()
        self.gate_proj = nn.Parameter(torch.empty(experts, inner, width))
        self.up_proj = nn.Parameter(torch.empty(experts, inner, width))
        self.down_proj = nn.Parameter(torch.empty(experts, width, inner))

    def forward(
        self,
        x: Float[Tensor, "T E"],
        chosen: Int[Tensor, "T A"],
        weights: Float[Tensor, "T A"],
    ) -> Float[Tensor, "T E"]:
        """The weighted sum of the chosen experts' outputs, summed in fp32."""
        order = chosen.flatten().argsort(stable=True)
        counts = chosen.flatten().bincount(minlength=self.gate_proj.shape[0])
        rows = x[order // chosen.shape[1]]
        inner = F.silu(multiply(rows, self.gate_proj, counts))
        inner = inner * multiply(rows, self.up_proj, counts)
        out = multiply(inner, self.down_proj, counts)
        # Back to the order of the tokens, then a plain sum: adding with an index would sum in an
        # order of its own on a GPU, and two runs would differ.
        out = out[order.argsort()].unflatten(0, chosen.shape)
        return (out.float() * weights.unsqueeze(-1)).sum(1).to(x.dtype)


def multiply(
    rows: Float[Tensor, "P I"], weight: Float[Tensor, "X O I"], counts: Int[Tensor, " X"]
) -> Float[Tensor, "P O"]:
    """Rows sorted by expert times the matrix of their expert; `counts` rows belong to each."""
    if rows.is_cuda and rows.dtype == torch.bfloat16 and hasattr(F, "grouped_mm"):
        offsets = counts.cumsum(0).to(torch.int32)
        return F.grouped_mm(rows, weight.transpose(-2, -1), offs=offsets)
    # unbind, not indexing: its gradient is one stack rather than a full-size sum per expert.
    matrices, parts = weight.unbind(0), rows.split(counts.tolist())
    used = [i for i, part in enumerate(parts) if len(part)]
    return torch.cat([F.linear(parts[i], matrices[i]) for i in used])


class MixtureMLP(nn.Module):
    """Routed experts plus a shared one that every token passes, unweighted."""

    def __init__(self, width: int, inner: int, shared: int, routing: Routing) -> None:
        super().__init__()
        self.gate = Router(width, routing)
        self.experts = Experts(width, inner, routing.experts)
        self.shared_experts = GatedMLP(width, inner * shared) if shared else None

    def forward(self, x: Float[Tensor, "B L E"]) -> Float[Tensor, "B L E"]:
        tokens = x.flatten(0, 1)
        out = self.experts(tokens, *self.gate(tokens)).view_as(x)
        return out if self.shared_experts is None else out + self.shared_experts(x)

"""Mixture of experts as in LLaDA2: group-limited sigmoid router, stacked experts, shared expert.

Dimension names: T tokens, X experts, A experts chosen per token, P rows sorted by expert (T times
A), E width, I and O the widths in and out of an expert's matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from xpredflow.models.expert_blocks import Blocks
from xpredflow.models.layers import GatedMLP
from xpredflow.models.quantize import PackedWeight


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
        # Autocast would multiply in bf16 in training and send tokens to other experts than decoding
        # does.
        with torch.autocast(x.device.type, enabled=False):
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


Stack = Tensor | PackedWeight  # a matrix per expert, (X, O, I)


class Experts(nn.Module):
    """All experts of a layer, stacked so that one call multiplies every token by its expert."""

    gate_proj: Stack
    up_proj: Stack
    down_proj: Stack

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
        sorted_experts, order = chosen.flatten().sort(stable=True)
        experts = torch.arange(self.gate_proj.shape[0], device=x.device)
        # Where each expert's rows end. Not bincount, which makes the host wait on a GPU.
        ends = torch.searchsorted(sorted_experts, experts, right=True, out_int32=True)
        packed = isinstance(self.gate_proj, PackedWeight)
        multiply = _multiplication(x, sorted_experts, ends, packed)
        rows = x[order // chosen.shape[1]]
        inner = F.silu(multiply(rows, self.gate_proj)) * multiply(rows, self.up_proj)
        out = multiply(inner, self.down_proj)
        # Back to the order of the tokens, then a plain sum: adding with an index would sum in an
        # order of its own on a GPU, and two runs would differ.
        out = out[order.argsort()].unflatten(0, chosen.shape)
        return (out.float() * weights.unsqueeze(-1)).sum(1).to(x.dtype)


def _multiplication(
    x: Float[Tensor, "T E"], experts: Int[Tensor, " P"], ends: Int[Tensor, " X"], packed: bool
) -> Callable[[Tensor, Stack], Tensor]:
    """How rows sorted by expert are multiplied by a stack of matrices here.

    Off the CPU, decoding never asks the device how many rows an expert has. Training does where
    torch has no kernel: blocks would keep copies of the matrices for the backward pass. Asking
    splits a compiled graph, so that on a CPU the product is one operation of it.
    """
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
    if not packed and has_grouped_mm(x.device, dtype):
        return lambda rows, weight: F.grouped_mm(
            rows.to(dtype),
            weight.to(dtype).transpose(-2, -1),  # type: ignore[operator]  (not packed)
            offs=ends,
        )
    if kind == "cpu" and torch.compiler.is_compiling() and not torch.is_grad_enabled():
        return lambda rows, weight: by_expert(rows, weight, ends)  # type: ignore[arg-type]  (not packed)
    if kind == "cpu" or torch.is_grad_enabled():
        counts = ends.diff(prepend=ends.new_zeros(1)).tolist()
        return lambda rows, weight: one_by_one(rows, weight, counts)
    return Blocks.of(experts, ends).multiply


def has_grouped_mm(device: torch.device, dtype: torch.dtype) -> bool:
    """torch has a kernel for it; elsewhere its own detour would read the counts on the host."""
    if not (device.type == "cuda" and dtype == torch.bfloat16 and hasattr(F, "grouped_mm")):
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def one_by_one(
    rows: Float[Tensor, "P I"], weight: Stack, counts: list[int]
) -> Float[Tensor, "P O"]:
    """One product per expert that was chosen at all; the host knows how many rows each has."""
    # unbind, not indexing: its gradient is one stack rather than a full-size sum per expert.
    matrices, parts = weight.unbind(0), rows.split(counts)
    used = [i for i, part in enumerate(parts) if len(part)]
    return torch.cat([F.linear(parts[i], matrices[i]) for i in used])


@torch.library.custom_op("xpredflow::by_expert", mutates_args=())
def by_expert(rows: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """The same as an operation that a compiler does not look into."""
    return one_by_one(rows, weight, ends.diff(prepend=ends.new_zeros(1)).tolist())


@by_expert.register_fake
def _(rows: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    return rows.new_empty(rows.shape[0], weight.shape[1])


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

"""What moves the weights in pretraining: Muon for matrices, AdamW for the rest, expert biases.

Muon (Jordan et al. 2024) takes momentum steps along the nearest orthogonal matrix. The one in
torch.optim orthogonalises in bfloat16, which many CPUs emulate slowly; this one does so only when
told to. The step is scaled to the size of AdamW's (Moonlight, arXiv 2502.16982), so that both
share one rate.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.models import MaskedDiffusionModel
from xpredflow.models.experts import Router
from xpredflow.processes import Share, summed

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # quintic that pulls all singular values towards 1


def orthogonalise(matrices: Float[Tensor, "K R C"], rounds: int = 5) -> Float[Tensor, "K R C"]:
    """Roughly U Vᵀ of each U Σ Vᵀ, by Newton-Schulz iterations on the shorter side.

    Rough enough for bfloat16, as Muon's authors do it: the matrices' own precision decides.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.flatten(1).norm(dim=1).view(-1, 1, 1) + 1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(rounds):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """For the matrices of the hidden layers; stacks of matrices are treated one by one."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        momentum: float,
        weight_decay: float,
        products: torch.dtype = torch.float32,
    ) -> None:
        """`products` is what the matrices are multiplied in while they are orthogonalised."""
        self.products = products
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One update; matrices of one shape are orthogonalised together."""
        for group in self.param_groups:
            by_shape: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[tuple(parameter.shape[-2:])].append(parameter)
            for alike in by_shape.values():
                self._update(alike, group)

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        directions = [self._momentum(p, group["momentum"]) for p in parameters]
        flat = torch.cat([d.reshape(-1, *d.shape[-2:]) for d in directions])
        scale = 0.2 * max(flat.shape[-2:]) ** 0.5
        steps = (
            orthogonalise(flat.to(self.products))
            .to(flat.dtype)
            .split([d.numel() // flat[0].numel() for d in directions])
        )
        for parameter, step in zip(parameters, steps, strict=True):
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            parameter.add_(step.view_as(parameter), alpha=-group["lr"] * scale)

    def _momentum(self, parameter: Tensor, momentum: float) -> Tensor:
        """Nesterov's look-ahead of the running average of gradients."""
        gradient = parameter.grad
        assert gradient is not None
        state = self.state[parameter]
        if "average" not in state:
            state["average"] = torch.zeros_like(parameter)
        state["average"].lerp_(gradient, 1 - momentum)
        return gradient.lerp(state["average"], momentum)


def make_optimizers(
    model: MaskedDiffusionModel,
    lr: float,
    weight_decay: float,
    products: torch.dtype = torch.float32,
) -> list[torch.optim.Optimizer]:
    """Muon for the matrices between embedding and head, AdamW for everything else."""
    layers, _, _ = model.trunk()
    inner = {p for layer in layers for p in layer.parameters() if p.ndim > 1}
    others = [p for p in model.parameters() if p not in inner]
    matrices = [p for p in model.parameters() if p in inner]
    return [
        Muon(matrices, lr, momentum=0.95, weight_decay=weight_decay, products=products),
        torch.optim.AdamW(others, lr, betas=(0.9, 0.98), weight_decay=weight_decay, fused=True),
    ]


class Balance:
    """Balance experts without a loss term: an idle one's selection bias rises, a busy one's falls.

    This is how models of LLaDA2's layout get their `expert_bias` (arXiv 2408.15664). A model
    without routers has nothing to balance. Counts what each router chose since the last step.
    """

    def __init__(
        self,
        model: nn.Module,
        rate: float = 1e-3,
        share: Share = Share(),  # noqa: B008  (immutable)
    ) -> None:
        self.rate, self.share = rate, share
        self.counts: dict[Router, Tensor] = {}
        for module in model.modules():
            if isinstance(module, Router):
                module.register_forward_hook(self._count)

    def _count(self, router: nn.Module, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
        assert isinstance(router, Router)
        chosen = output[0].flatten().bincount(minlength=router.routing.experts)
        self.counts[router] = chosen + self.counts.get(router, 0)

    @torch.no_grad()
    def step(self) -> None:
        """Move every bias one notch towards an even load."""
        for router, count in self.counts.items():
            load = summed(count.float(), self.share)
            router.expert_bias += self.rate * (load.mean() - load).sign()
        self.counts.clear()

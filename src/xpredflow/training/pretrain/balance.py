"""Balance experts without a loss term: an idle expert's selection bias rises, a busy one's falls.

This is how models of LLaDA2's layout get their `expert_bias` (arXiv 2408.15664). A model without
routers has nothing to balance.
"""

import torch
from torch import Tensor, nn

from xpredflow.models.experts import Router


class Balance:
    """Counts what each router chose since the last step."""

    def __init__(self, model: nn.Module, rate: float = 1e-3) -> None:
        self.rate = rate
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
            load = count.float()
            router.expert_bias += self.rate * (load.mean() - load).sign()
        self.counts.clear()

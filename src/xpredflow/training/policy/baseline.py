"""What a view promises by itself: taken off the advantage, luck of the state is not learned from.

GRPO's baseline is the mean over the draws of a prompt, the same at every position and in every
pass. This one knows the state too: whoever already stands well earns nothing by it.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.policies.view import view_size

_HIDDEN = 32
_RATE = 3e-3
_FITS = 8  # gradient steps per update
_BATCH = 4096


class ValueBaseline:
    """Predicts the advantage from the view, by least squares over the updates so far."""

    def __init__(self, view: str) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.network = nn.Sequential(
                nn.Linear(view_size(view), _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, 1)
            )
        # nothing is promised before anything was seen
        last = self.network[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=_RATE)

    @torch.no_grad()
    def __call__(self, features: Float[Tensor, "M F"]) -> Float[Tensor, " M"]:
        return self.network(features).squeeze(-1)

    def fit(
        self,
        features: Float[Tensor, "M F"],
        gain: Float[Tensor, " M"],
        weight: Float[Tensor, " M"],
        draw: torch.Generator,
    ) -> None:
        """Some steps towards what was earned; rollouts weigh the same, as in the update."""
        for _ in range(_FITS):
            chosen = torch.randint(len(gain), (min(_BATCH, len(gain)),), generator=draw)
            miss = self.network(features[chosen]).squeeze(-1) - gain[chosen]
            own = weight[chosen]
            self.optimizer.zero_grad()
            ((own * miss.square()).sum() / own.sum()).backward()
            self.optimizer.step()

    def state(self) -> dict[str, Any]:
        """Everything that going on needs."""
        return {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        """As `state` gave it."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])

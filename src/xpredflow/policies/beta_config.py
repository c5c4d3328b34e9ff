"""Shape of the learned policy, apart from its network: the command line lists it without torch."""

from typing import Literal

from xpredflow.errors import InputError
from xpredflow.settings import grouped, settings

_network = grouped("Policy network")


@settings
class BetaConfig:
    """Shape of the policy network and the range of its concentration κ."""

    hidden: int = _network(64, "width of the two layers", ge=1)
    kappa_min: float = _network(2.0, "least concentration κ of the Beta density")
    kappa_max: float = _network(100.0, "largest κ")
    actions: Literal["step", "thresholds"] = _network(
        "step",
        "what it chooses: the step size, or commitment threshold and re-editing margin as well",
    )
    view: Literal["position", "left", "prefix"] = _network(
        "position",
        "what it sees: the paper's eight numbers, the two positions before it too, or all of them",
    )

    def __post_init__(self) -> None:
        if not 0 < self.kappa_min < self.kappa_max:
            raise InputError(
                f"kappa_min is {self.kappa_min} and kappa_max {self.kappa_max}: expected"
                " 0 < kappa_min < kappa_max"
            )

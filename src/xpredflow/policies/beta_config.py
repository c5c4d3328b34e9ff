"""Shape of the learned policy, apart from its network: the command line lists it without torch."""

from pydantic.config import JsonDict

from xpredflow.errors import InputError
from xpredflow.settings import Field, settings

_NETWORK: JsonDict = {"group": "Policy network"}


@settings
class BetaConfig:
    """Shape of the policy network and the range of its concentration κ."""

    hidden: int = Field(
        default=64, ge=1, description="width of the two layers", json_schema_extra=_NETWORK
    )
    kappa_min: float = Field(
        default=2.0,
        description="least concentration κ of the Beta density",
        json_schema_extra=_NETWORK,
    )
    kappa_max: float = Field(default=100.0, description="largest κ", json_schema_extra=_NETWORK)

    def __post_init__(self) -> None:
        if not 0 < self.kappa_min < self.kappa_max:
            raise InputError(
                f"kappa_min is {self.kappa_min} and kappa_max {self.kappa_max}: expected"
                " 0 < kappa_min < kappa_max"
            )

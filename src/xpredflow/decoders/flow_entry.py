"""The flow in the registry: its rules and its step-size policy as the options of one decoder."""

from dataclasses import dataclass
from typing import Any

from xpredflow.flow import Flow, Rules
from xpredflow.policies import make_policy
from xpredflow.policies.beta import LearnedPolicy
from xpredflow.registry import DECODERS
from xpredflow.settings import option_names
from xpredflow.types import Policy


@dataclass(frozen=True)
class FlowOptions(Rules):
    """The flow's rules, its step-size policy and, for a sampled one, the temperature τ."""

    policy: str | Policy = "confidence"
    policy_temperature: float | None = None  # None: the expected action


@DECODERS.register(
    "flow",
    summary="continuous state per position, moved towards the prediction by a step-size policy",
    main="policy",
    options=FlowOptions,
)
def make_flow(
    policy: str | Policy = "confidence", policy_temperature: float | None = None, **rules: Any
) -> Flow:
    """A learned policy brings the rules that it was trained under; what is given wins."""
    made = make_policy(policy, policy_temperature)
    trained_with = made.trained_with if isinstance(made, LearnedPolicy) else {}
    known = {name: trained_with[name] for name in option_names(Rules) if name in trained_with}
    return Flow(made, Rules(**(known | rules)))

"""The flow by name: its options, and which rules are in force when none are given."""

from typing import Any, Literal

from xpredflow.errors import InputError
from xpredflow.flow import Flow
from xpredflow.flow_extensions import RULE_SETS, ExtendedRules, make_flow
from xpredflow.policies import make_policy
from xpredflow.policies.beta import LearnedPolicy
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, option_names, settings
from xpredflow.types import Policy

DEFAULT_POLICY = "confidence"


@settings
class FlowOptions(ExtendedRules):
    """The flow's rules, its step-size policy and, for a sampled one, the temperature τ."""

    policy: str | Policy = Field(DEFAULT_POLICY, description="the step-size policy")
    policy_temperature: float | None = Field(
        None, gt=0, description="draw a learned policy's actions; none: their expectation"
    )
    rules: Literal["auto", "paper", "policy", "training-free"] = Field(
        "auto",
        description="rule set to start from: the paper's, those that a learned policy was trained"
        " under, those for weights that were not aligned; auto: as checkpoint or policy says",
    )


@DECODERS.register(
    "flow",
    summary="continuous state per position, moved towards the prediction by a step-size policy",
    main="policy",
    options=FlowOptions,
)
def build_flow(
    policy: str | Policy = DEFAULT_POLICY,
    policy_temperature: float | None = None,
    rules: str = "auto",
    **given: Any,
) -> Flow:
    """The rule set that is named, and what is given beside it; what is given wins."""
    made = make_policy(policy, policy_temperature)
    return make_flow(made, starting_rules(rules, made) | given)


def starting_rules(name: str, policy: Policy) -> dict[str, Any]:
    """The rules of a set; `auto` takes those of a learned policy, or the paper's."""
    if name in RULE_SETS:
        return RULE_SETS[name]
    trained = trained_rules(policy)
    if trained is None and name == "policy":
        raise InputError(
            "rules is 'policy', but this policy was trained under none: name a learned one"
            " (policy=learned:NAME), or take rules=paper or rules=training-free"
        )
    return trained or {}


def trained_rules(policy: Policy) -> dict[str, Any] | None:
    """What a learned policy was trained under; None for a heuristic."""
    if not isinstance(policy, LearnedPolicy):
        return None
    known = option_names(ExtendedRules)
    return {name: value for name, value in policy.trained_with.items() if name in known}

"""Every step-size policy of the flow by name, built from a spec such as `constant:1/16`."""

from xpredflow.errors import InputError, unknown_name
from xpredflow.policies.beta import embedded_policies, load_policy
from xpredflow.policies.heuristic import Confidence, Constant, Jump, Power, Uniform
from xpredflow.settings import convert, option_names
from xpredflow.types import Policy

POLICIES: dict[str, tuple[type, str]] = {
    "constant": (Constant, "the same fraction of the rest everywhere: constant:1/16"),
    "confidence": (Confidence, "progress becomes confidence, t ← max(t, c)"),
    "uniform": (Uniform, "the same Δt everywhere, 1/T or as given: uniform:1/32"),
    "jump": (Jump, "all the way where c ≥ θ, else stay: jump:0.9"),
    "power": (Power, "a = c^n: power:8"),
}


def make_policy(policy: str | Policy, temperature: float | None = None) -> Policy:
    """A policy from `constant:1/16`, `confidence`, ..., `learned:FILE`, or as it is."""
    if not isinstance(policy, str):
        return policy
    name, _, value = policy.partition(":")
    if name == "learned":
        if not value:
            raise InputError(
                "policy 'learned' needs the file it was saved to, learned:FILE, or the name of one"
                f" that comes with the package: {', '.join(embedded_policies())}"
            )
        return load_policy(value, temperature)
    if temperature is not None:
        raise InputError(
            f"policy_temperature is {temperature} but policy {policy!r} is not sampled:"
            " only a learned policy (learned:FILE) is"
        )
    if name not in POLICIES:
        raise unknown_name("policy", name, [*POLICIES, "learned"])
    cls, _ = POLICIES[name]
    if not value:
        return cls()
    if not option_names(cls):
        raise InputError(f"policy {policy!r}: {name!r} takes no value; write {name!r}")
    return cls(convert(f"policy {name!r}", value, float))
